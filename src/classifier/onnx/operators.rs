//! The operators of a network: which of them are missing here, and which of them an output needs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tract_onnx::Onnx;
use tract_onnx::data_resolver::FopenDataResolver;
use tract_onnx::model::ParsingContext;
use tract_onnx::pb::{GraphProto, ModelProto, NodeProto};

use super::file::folder;
use crate::error::caught;

/// Nodes named in a message for each operator.
const NAMED: usize = 3;
/// Characters of an inner cause in a message: some print a whole graph.
const CAUSE: usize = 400;

/// Operators of other domains that the runtime means where it reads their names, and their domains. It looks at names
/// alone, and names mean other things in other domains: `Attention` of com.microsoft is not ONNX's.
const FOREIGN: [(&str, &[&str]); 2] = [
    (
        "ai.onnx.ml",
        &[
            "ArrayFeatureExtractor",
            "CategoryMapper",
            "LinearClassifier",
            "LinearRegressor",
            "Normalizer",
            "TreeEnsembleClassifier",
        ],
    ),
    (
        "com.microsoft",
        &[
            "BiasGelu",
            "FastGelu",
            "GatherBlockQuantized",
            // As ONNX's own without `approximate`.
            "Gelu",
            "GroupQueryAttention",
            "MatMulNBits",
            "MultiHeadAttention",
            "QuickGelu",
            "RotaryEmbedding",
            "SkipLayerNormalization",
            "SkipSimplifiedLayerNormalization",
        ],
    ),
];

/// Whether the runtime's operator of a node's name is the node's.
fn is_meant(node: &NodeProto) -> bool {
    let listed = |(domain, names): &(&str, &[&str])| *domain == node.domain && names.contains(&node.op_type.as_str());
    is_own(&node.domain) || FOREIGN.iter().any(listed)
}

/// An operator that cannot be run here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unsupported {
    /// Its name, with its domain where that is not ONNX's own.
    pub operator: String,
    /// The nodes that use it, by name or by their first output.
    pub nodes: Vec<String>,
    /// Why, where the operator itself is known.
    pub cause: Option<String>,
}

/// The reader of files, whose arrays may lie beside them.
pub(super) fn reader() -> Onnx {
    // Types and shapes noted along the way are of the exporter's example, and not always of the
    // batch run here.
    Onnx { provider: Arc::new(FopenDataResolver), ..tract_onnx::onnx() }.with_ignore_value_info(true)
}

/// Version of ONNX's own operators.
pub(super) fn opset(model: &ModelProto) -> i64 {
    let own = model.opset_import.iter().find(|import| is_own(&import.domain));
    own.map_or(0, |import| import.version)
}

fn is_own(domain: &str) -> bool {
    domain.is_empty() || domain == "ai.onnx"
}

/// Name of a node, or of what it gives.
pub(super) fn name(node: &NodeProto) -> &str {
    match node.name.as_str() {
        "" => node.output.first().map_or("", String::as_str),
        name => name,
    }
}

/// Bodies of loops and conditions.
fn bodies(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}

/// All nodes, those of bodies included.
pub(super) fn nodes(graph: &GraphProto) -> Vec<&NodeProto> {
    let mut found = Vec::new();
    for node in &graph.node {
        found.push(node);
        bodies(node).for_each(|body| found.extend(nodes(body)));
    }
    found
}

/// Everything that a node reads, in its bodies too.
fn reads(node: &NodeProto) -> Vec<&str> {
    let inner = bodies(node).flat_map(|body| {
        let given = body.output.iter().map(|output| output.name.as_str());
        body.node.iter().flat_map(reads).chain(given).collect::<Vec<_>>()
    });
    node.input.iter().map(String::as_str).chain(inner).filter(|name| !name.is_empty()).collect()
}

/// Keeps one output of a graph and what it needs.
pub(super) fn keep_output(graph: &mut GraphProto, output: &str) {
    let mut needed: HashSet<String> = HashSet::from([output.to_owned()]);
    let mut kept = vec![false; graph.node.len()];
    // Nodes are sorted: whoever reads comes after who gives.
    for (node, kept) in graph.node.iter().zip(&mut kept).rev() {
        *kept = node.output.iter().any(|output| needed.contains(output));
        if *kept {
            needed.extend(reads(node).into_iter().map(str::to_owned));
        }
    }
    let mut kept = kept.into_iter();
    graph.node.retain(|_| kept.next().unwrap_or(true));
    graph.initializer.retain(|array| needed.contains(&array.name));
    graph.input.retain(|input| needed.contains(&input.name));
    graph.output.retain(|kept| kept.name == output);
}

/// All operators that cannot be run here, and their nodes.
pub(super) fn unsupported(model: &ModelProto, path: &Path) -> Vec<Unsupported> {
    let Some(graph) = &model.graph else { return Vec::new() };
    let reader = reader();
    let context = ParsingContext {
        onnx_operator_set_version: opset(model),
        framework: &reader,
        model,
        parent_graphs: vec![graph],
        model_dir: folder(path).to_str(),
        template: Default::default(),
    };
    let functions: HashMap<_, _> = model
        .functions
        .iter()
        .map(|function| (function.name.as_deref().unwrap_or(""), function.domain.as_deref()))
        .collect();
    let mut found: BTreeMap<(String, Option<String>), Vec<String>> = BTreeMap::new();
    for node in nodes(graph) {
        let operator = match node.domain.as_str() {
            domain if is_own(domain) => node.op_type.clone(),
            domain => format!("{domain}::{}", node.op_type),
        };
        let known = reader.op_register.0.get(&node.op_type).filter(|_| is_meant(node));
        let local = functions.get(node.op_type.as_str()).is_some_and(|domain| domain.unwrap_or("") == node.domain);
        let cause = match known {
            _ if local => {
                Some("a function of the file's own: write it out with onnx.inliner.inline_local_functions".into())
            }
            None => None,
            // It reads its whole array, and cannot fail otherwise.
            Some(_) if node.op_type == "Constant" => continue,
            Some(build) => match caught(|| build(&context, node).map(|_| ())) {
                Ok(Ok(())) => continue,
                Ok(Err(e)) => Some(shortened(&format!("{e:#}"))),
                Err(said) => Some(shortened(&said)),
            },
        };
        found.entry((operator, cause)).or_default().push(name(node).to_owned());
    }
    found.into_iter().map(|((operator, cause), nodes)| Unsupported { operator, nodes, cause }).collect()
}

/// All of them in one message, with the way out.
pub(super) fn complaint(unsupported: &[Unsupported], opset: i64) -> String {
    let mut text = format!("it uses operators that cannot be run here (opset {opset}): ");
    for (i, Unsupported { operator, nodes, cause }) in unsupported.iter().enumerate() {
        let named = nodes.iter().take(NAMED).map(|node| format!("'{node}'")).collect::<Vec<_>>().join(", ");
        let more = if nodes.len() > NAMED { format!(" and {} more", nodes.len() - NAMED) } else { String::new() };
        let cause = cause.as_ref().map_or(String::new(), |cause| format!(": {cause}"));
        let separator = if i > 0 { "; " } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{operator} ({named}{more}{cause})");
    }
    text.push_str(". Export again, for example with torch.onnx.export(…, opset_version=18)");
    text
}

/// The beginning of a long message, on one line.
pub(super) fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(CAUSE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
