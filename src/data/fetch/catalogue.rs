//! The corpora that can be fetched, as data: where each file lies, how long it is, and its SHA-256.
//!
//! Sizes and SHA-256 are published by TensorFlow Datasets (`tensorflow_datasets/url_checksums`).
//! Except for EMNIST, the git-annex keys of `datasets-mila` state the same sizes, and their MD5 are
//! torchvision's. EMNIST's sum also stands in other public code. The label files of MNIST and
//! Fashion-MNIST were hashed again from copies and agree.

/// A corpus that can be fetched by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    /// Its name, and that of the folder it goes into.
    pub name: &'static str,
    /// Other names it answers to.
    pub aliases: &'static [&'static str],
    /// What it is, in one sentence.
    pub about: &'static str,
    /// Licence or terms of use, and whom to cite.
    pub terms: &'static str,
    /// Folder of its downloads; corpora that are cut from one archive share it.
    pub downloads: &'static str,
    /// Addresses to which the names of files are added, in the order in which they are tried.
    pub mirrors: &'static [&'static str],
    /// What is downloaded.
    pub files: &'static [Source],
    /// How the downloads become files that [`crate::data::open_dataset`] opens.
    pub layout: Layout,
    /// Names of the classes, for formats that do not tell them; empty where the readers know them.
    pub classes: &'static [&'static str],
}

impl Corpus {
    /// Bytes to download where nothing is there yet.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns whether a name, in any case and with any separators, means this corpus.
    pub fn answers_to(&self, name: &str) -> bool {
        let plain = |text: &str| -> String {
            text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
        };
        std::iter::once(&self.name).chain(self.aliases).any(|own| plain(own) == plain(name))
    }
}

/// A file of a corpus on its mirrors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Its name, there and here.
    pub file: &'static str,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its bytes, 64 hexadecimal digits.
    pub sha256: &'static str,
}

/// How a corpus is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// IDX files, used as they are.
    Idx,
    /// One split of EMNIST's archive, whose images are stored transposed.
    Emnist {
        /// Name of the split in the archive's file names.
        split: &'static str,
        /// The label that the archive gives to the first class.
        first_label: u8,
    },
    /// A gzipped tar archive with these files, in whatever folder.
    Tar {
        /// Names without folders.
        members: &'static [&'static str],
    },
    /// MATLAB files with `X` and `y`, as (download, archive that is written).
    Svhn {
        /// Pairs of file names.
        files: &'static [(&'static str, &'static str)],
    },
}

/// All corpora that can be fetched.
pub fn catalogue() -> &'static [Corpus] {
    &CATALOGUE
}

/// Digits, capitals, small letters.
const BYCLASS: &[&str] = &[
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M",
    "N", "O", "P", "Q", "R", "S", "T", "U", "V", "W", "X", "Y", "Z", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j",
    "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z",
];
/// Letters whose two cases look alike are one class, under the capital's name.
const BYMERGE: &[&str] = &[
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M",
    "N", "O", "P", "Q", "R", "S", "T", "U", "V", "W", "X", "Y", "Z", "a", "b", "d", "e", "f", "g", "h", "n", "q", "r",
    "t",
];
const DIGITS: &[&str] = BYCLASS.split_at(10).0;
const LETTERS: &[&str] = BYCLASS.split_at(10).1.split_at(26).0;

/// The four files of MNIST and its successors: training images and labels, test images and labels.
const fn idx_files(bytes: [u64; 4], sha256: [&'static str; 4]) -> [Source; 4] {
    let [a, b, c, d] = sha256;
    [
        Source { file: "train-images-idx3-ubyte.gz", bytes: bytes[0], sha256: a },
        Source { file: "train-labels-idx1-ubyte.gz", bytes: bytes[1], sha256: b },
        Source { file: "t10k-images-idx3-ubyte.gz", bytes: bytes[2], sha256: c },
        Source { file: "t10k-labels-idx1-ubyte.gz", bytes: bytes[3], sha256: d },
    ]
}

const EMNIST: &[Source] = &[Source {
    file: "gzip.zip",
    bytes: 561_753_746,
    sha256: "fb9bb67e33772a9cc0b895e4ecf36d2cf35be8b709693c3564cea2a019fcda8e",
}];

/// One of the six ways in which EMNIST sorts its characters.
const fn emnist(
    name: &'static str,
    split: &'static str,
    aliases: &'static [&'static str],
    about: &'static str,
    classes: &'static [&'static str],
    first_label: u8,
) -> Corpus {
    Corpus {
        name,
        aliases,
        about,
        terms: "Derived from NIST Special Database 19, a work of the US government; its page states no licence. Cite Cohen, \
                Afshar, Tapson & van Schaik (2017), EMNIST: an extension of MNIST to handwritten letters, arXiv:1702.05373.",
        downloads: "emnist",
        mirrors: &[
            "https://biometrics.nist.gov/cs_links/EMNIST/",
            "https://www.itl.nist.gov/iaui/vip/cs_links/EMNIST/",
        ],
        files: EMNIST,
        layout: Layout::Emnist { split, first_label },
        classes,
    }
}

const CIFAR_TERMS: &str = "No licence is stated by its authors. Cite Krizhevsky (2009), Learning Multiple Layers of \
                           Features from Tiny Images, https://www.cs.toronto.edu/~kriz/cifar.html.";

static CATALOGUE: [Corpus; 12] = [
    Corpus {
        name: "mnist",
        aliases: &[],
        about: "70,000 handwritten digits, 28×28 grey, 10 classes",
        terms: "Its page states no licence; copies name CC BY-SA 3.0. Cite LeCun, Bottou, Bengio & Haffner (1998), \
                Gradient-based learning applied to document recognition, Proc. IEEE 86(11).",
        downloads: "mnist",
        mirrors: &[
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ],
        files: &idx_files(
            [9_912_422, 28_881, 1_648_877, 4_542],
            [
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ],
        ),
        layout: Layout::Idx,
        classes: DIGITS,
    },
    Corpus {
        name: "fashion-mnist",
        aliases: &["fmnist"],
        about: "70,000 articles of clothing, 28×28 grey, 10 classes",
        terms: "MIT licence. Cite Xiao, Rasul & Vollgraf (2017), Fashion-MNIST: a novel image dataset for benchmarking \
                machine learning algorithms, arXiv:1708.07747.",
        downloads: "fashion-mnist",
        mirrors: &[
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
            "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        ],
        files: &idx_files(
            [26_421_880, 29_515, 4_422_102, 5_148],
            [
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ],
        ),
        layout: Layout::Idx,
        classes: &[
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ],
    },
    Corpus {
        name: "kmnist",
        aliases: &["kuzushiji-mnist"],
        about: "70,000 cursive Japanese characters, 28×28 grey, 10 classes",
        terms: "CC BY-SA 4.0. Cite Clanuwat, Bober-Irizar, Kitamoto, Lamb, Yamamoto & Ha (2018), Deep Learning for Classical \
                Japanese Literature, arXiv:1812.01718.",
        downloads: "kmnist",
        mirrors: &[
            "https://codh.rois.ac.jp/kmnist/dataset/kmnist/",
            "http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
            "https://storage.googleapis.com/s4tf-hosted-binaries/datasets/KMNIST/",
        ],
        files: &idx_files(
            [18_165_135, 29_497, 3_041_136, 5_120],
            [
                "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4",
                "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17",
                "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
                "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
            ],
        ),
        layout: Layout::Idx,
        classes: &["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"],
    },
    emnist(
        "emnist-balanced",
        "balanced",
        &["emnist"],
        "131,600 digits and letters, 28×28 grey, 47 classes of one size",
        BYMERGE,
        0,
    ),
    emnist(
        "emnist-byclass",
        "byclass",
        &[],
        "814,255 digits and letters, 28×28 grey, 62 classes as they occur",
        BYCLASS,
        0,
    ),
    emnist(
        "emnist-bymerge",
        "bymerge",
        &[],
        "814,255 digits and letters, 28×28 grey, 47 classes as they occur",
        BYMERGE,
        0,
    ),
    emnist(
        "emnist-letters",
        "letters",
        &[],
        "145,600 letters, capitals and small ones together, 28×28 grey, 26 classes",
        LETTERS,
        1,
    ),
    emnist("emnist-digits", "digits", &[], "280,000 handwritten digits, 28×28 grey, 10 classes", DIGITS, 0),
    emnist(
        "emnist-mnist",
        "mnist",
        &[],
        "70,000 handwritten digits in the sizes of MNIST, 28×28 grey, 10 classes",
        DIGITS,
        0,
    ),
    Corpus {
        name: "svhn",
        aliases: &["svhn-cropped"],
        about: "99,289 digits of house numbers (73,257 to train, 26,032 to test), 32×32 RGB, 10 classes",
        terms: "For non-commercial use. Cite Netzer, Wang, Coates, Bissacco, Wu & Ng (2011), Reading Digits in Natural Images \
                with Unsupervised Feature Learning, NIPS Workshop.",
        downloads: "svhn",
        mirrors: &["http://ufldl.stanford.edu/housenumbers/", "https://ufldl.stanford.edu/housenumbers/"],
        files: &[
            Source {
                file: "train_32x32.mat",
                bytes: 182_040_794,
                sha256: "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            },
            Source {
                file: "test_32x32.mat",
                bytes: 64_275_384,
                sha256: "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
            },
        ],
        layout: Layout::Svhn { files: &[("train_32x32.mat", "train.npz"), ("test_32x32.mat", "test.npz")] },
        classes: &[],
    },
    Corpus {
        name: "cifar10",
        aliases: &["cifar-10"],
        about: "60,000 photographs, 32×32 RGB, 10 classes",
        terms: CIFAR_TERMS,
        downloads: "cifar10",
        mirrors: &[
            "https://www.cs.toronto.edu/~kriz/",
            "https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/",
            "https://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/",
        ],
        files: &[Source {
            file: "cifar-10-binary.tar.gz",
            bytes: 170_052_171,
            sha256: "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        }],
        layout: Layout::Tar {
            members: &[
                "data_batch_1.bin",
                "data_batch_2.bin",
                "data_batch_3.bin",
                "data_batch_4.bin",
                "data_batch_5.bin",
                "test_batch.bin",
                "batches.meta.txt",
            ],
        },
        classes: &[],
    },
    Corpus {
        name: "cifar100",
        aliases: &["cifar-100"],
        about: "60,000 photographs, 32×32 RGB, 100 classes",
        terms: CIFAR_TERMS,
        downloads: "cifar100",
        mirrors: &["https://www.cs.toronto.edu/~kriz/", "http://www.cs.toronto.edu/~kriz/"],
        files: &[Source {
            file: "cifar-100-binary.tar.gz",
            bytes: 168_513_733,
            sha256: "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        }],
        layout: Layout::Tar { members: &["train.bin", "test.bin", "fine_label_names.txt", "coarse_label_names.txt"] },
        classes: &[],
    },
];
