//! The names that a checkpoint's pickle may use. A pickle can name any function of Python and have
//! it called; only those that make arrays and containers are known here, and any other is refused
//! when it is named, whether it would be called, and whatever would become of its result.

use super::array::Number;

/// What a known name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Global {
    /// A dictionary of some kind.
    Dict,
    /// A list, tuple or set of some kind.
    Sequence,
    /// A storage of these numbers; `None`: of bytes.
    Storage(Option<Number>),
    /// A type of numbers.
    Number(Number),
    /// Makes an array of a storage; true: the type of its numbers is its seventh argument.
    Rebuild(bool),
    /// Is its first argument: an array that is trained.
    Parameter,
    /// Calls its first argument with its third: an array of a class of its own.
    FromType,
    /// Something small that stands beside the arrays: a number of NumPy, a device, options.
    Data,
}

impl Global {
    /// What a name of a module stands for.
    ///
    /// # Errors
    /// That the file wants to run code, and which.
    pub fn of(module: &str, name: &str) -> Result<Self, String> {
        Self::known(module, name).ok_or_else(|| {
            format!(
                "wants to run code: its pickle names '{module}.{name}', which makes neither an array nor a plain \
                 container. Nothing of it was run. What opens is a state dict: torch.save(model.state_dict(), …)"
            )
        })
    }

    fn known(module: &str, name: &str) -> Option<Self> {
        match (module, name) {
            ("collections", "OrderedDict" | "defaultdict" | "Counter") => Some(Self::Dict),
            ("builtins" | "__builtin__", "dict") => Some(Self::Dict),
            ("builtins" | "__builtin__", "list" | "tuple" | "set" | "frozenset") => Some(Self::Sequence),
            ("torch", "Size") => Some(Self::Sequence),
            ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => Some(Self::Rebuild(false)),
            ("torch._utils", "_rebuild_tensor_v3") => Some(Self::Rebuild(true)),
            ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => Some(Self::Parameter),
            ("torch._tensor", "_rebuild_from_type_v2") => Some(Self::FromType),
            ("torch" | "torch.cuda" | "torch.storage", "UntypedStorage") => Some(Self::Storage(None)),
            ("torch" | "torch.cuda", _) if name.ends_with("Storage") => storage(name).map(|n| Self::Storage(Some(n))),
            ("torch", "device" | "Tensor") => Some(Self::Data),
            // The class of an array in a tar file ...
            ("torch" | "torch.cuda", _) if tensor(name) => Some(Self::Data),
            // ... and of one that FromType makes.
            ("torch.nn.parameter", "Parameter" | "Buffer") => Some(Self::Data),
            ("torch", _) => number(name).map(Self::Number),
            ("builtins" | "__builtin__", "int" | "float" | "bool" | "str" | "bytes" | "bytearray" | "complex") => {
                Some(Self::Data)
            }
            ("numpy", "dtype" | "ndarray") => Some(Self::Data),
            ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar" | "_reconstruct") => Some(Self::Data),
            // How NumPy's bytes are written in protocol 2.
            ("_codecs", "encode") => Some(Self::Data),
            ("argparse", "Namespace") => Some(Self::Data),
            _ => None,
        }
    }
}

/// The numbers of a class of storages.
fn storage(class: &str) -> Option<Number> {
    Some(match class {
        "DoubleStorage" => Number::F64,
        "FloatStorage" => Number::F32,
        "HalfStorage" => Number::F16,
        "BFloat16Storage" => Number::Bf16,
        "ComplexDoubleStorage" => Number::Other(16),
        "LongStorage" | "ComplexFloatStorage" => Number::Other(8),
        "IntStorage" => Number::Other(4),
        "ShortStorage" => Number::Other(2),
        "CharStorage" | "ByteStorage" | "BoolStorage" => Number::Other(1),
        _ => return None,
    })
}

/// Whether there are storages for this class of arrays.
fn tensor(class: &str) -> bool {
    class.strip_suffix("Tensor").is_some_and(|kind| storage(&format!("{kind}Storage")).is_some())
}

/// The numbers of a `torch.dtype`.
fn number(dtype: &str) -> Option<Number> {
    Some(match dtype {
        "float64" | "double" => Number::F64,
        "float32" | "float" => Number::F32,
        "float16" | "half" => Number::F16,
        "bfloat16" => Number::Bf16,
        "complex128" => Number::Other(16),
        "int64" | "long" | "uint64" | "complex64" => Number::Other(8),
        "int32" | "int" | "uint32" => Number::Other(4),
        "int16" | "short" | "uint16" => Number::Other(2),
        "int8" | "uint8" | "bool" => Number::Other(1),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_arrays_and_containers_are_known() {
        assert_eq!(Global::of("torch", "FloatStorage"), Ok(Global::Storage(Some(Number::F32))));
        assert_eq!(Global::of("torch", "bfloat16"), Ok(Global::Number(Number::Bf16)));
        let code = [
            ("os", "system"),
            ("posix", "system"),
            ("builtins", "eval"),
            ("builtins", "getattr"),
            ("torch", "load"),
            ("torch", "hub.load"),
            ("torch", "EvilStorage"),
            ("torch.storage", "_load_from_bytes"),
            ("numpy", "load"),
            ("__main__", "Net"),
        ];
        for (module, name) in code {
            let message = Global::of(module, name).unwrap_err();
            assert!(message.contains("run code") && message.contains(&format!("'{module}.{name}'")), "{message}");
        }
    }
}
