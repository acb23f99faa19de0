//! The entries that forms need: how flows and classifiers are built and trained, and what a run is told.

use super::Term;
use super::terms::term;

/// Every entry.
pub const TERMS: &[Term] = &[
    term(
        "Spec",
        &["spec", "spec file", "preset", "presets", "experiment file", "start from", "ranking spec"],
        "",
        "A text file (.toml) that says everything a run is told. It is kept in the folder of the run, so that the run can be repeated. \
         A preset is one that comes with the program.",
        "",
    ),
    term(
        "Seed",
        &["seed", "seeds"],
        "",
        "The number that random draws begin from: the same seed gives the same draws, another one gives others.",
        "",
    ),
    term("Epoch", &["epoch", "epochs"], "", "One pass over all training images.", ""),
    term("Batch", &["batch"], "images", "The images that one step of the training looks at together.", ""),
    term(
        "Learning rate",
        &["learning rate", "warm-up"],
        "per step",
        "How far one step of the training moves the weights. It rises from 0 over the warm-up, then falls along a cosine.",
        "",
    ),
    term(
        "Weight decay",
        &["weight decay"],
        "per rate",
        "Pulls every weight a little towards 0 in each step, which keeps a network from learning its images by heart.",
        "w ← w - rate · decay · w",
    ),
    term(
        "Held-out images",
        &["held out", "held-out images"],
        "images",
        "Images that are not trained on: they tell whether what was learned holds for others, and which epoch to keep.",
        "",
    ),
    term(
        "Levels of a Glow",
        &["levels"],
        "",
        "A Glow works at several scales. Each level halves the sides of the image, and half of its numbers are then done.",
        "side = a multiple of 2^levels",
    ),
    term(
        "Steps of a Glow",
        &["flow steps"],
        "per level",
        "One invertible layer of a Glow: a normalisation, a mixing of the channels, and a coupling. More steps fit better and take \
         longer.",
        "",
    ),
    term(
        "Coupling network",
        &["hidden", "coupling network", "coupling networks"],
        "channels",
        "The small network in each step of a Glow: from half of the numbers it computes how the other half is scaled and moved. \
         Its hidden channels are its width.",
        "b ← b · s(a) + t(a)",
    ),
    term(
        "Lambda λ",
        &["lambda", "λ"],
        "nats/nat",
        "How much telling the classes apart counts beside fitting the images when a Glow is trained. 0: fitting alone.",
        "loss = NLL + λ · cross-entropy",
    ),
    term(
        "Patches and blocks of a TarFlow",
        &["patch", "patch side", "blocks"],
        "",
        "A TarFlow cuts the image into square patches. Each block goes through them one by one and moves each by what came before; \
         every second block goes backwards.",
        "",
    ),
    term(
        "Transformer",
        &["layers", "width", "Transformer", "Transformers"],
        "",
        "A network in which every patch of the image looks at others. Layers are its depth, channels its width.",
        "",
    ),
    term(
        "Label dropout",
        &["label dropout"],
        "%",
        "Share of the training images whose class is kept from the flow, so that it learns images of no class in particular, too.",
        "",
    ),
    term(
        "Training noise",
        &["noise", "noise σ", "dequantisation", "uniform"],
        "",
        "Pixels are whole numbers; a flow needs continuous ones. Noise is added: as wide as one step of a pixel (uniform), or \
         Gaussian of standard deviation σ.",
        "x + ε",
    ),
    term(
        "Volume-preserving flow",
        &["volume-preserving"],
        "",
        "Its blocks move numbers and never stretch them, so that a density in the image is that of the noise.",
        "|det ∂f/∂x| = 1",
    ),
    term(
        "Architecture",
        &["architecture", "architectures"],
        "",
        "The form of a network. Linear and MLP see the image as a list of numbers; ConvNet, AlexNet, ResNet, WRN, MobileNet and ConvNeXt \
         slide filters over it; ViT and Swin are Transformers.",
        "",
    ),
    term(
        "What estimators see",
        &["estimators see"],
        "",
        "What neighbours, trees and kernels are given of an image: the pixels of the training images; what the last layer of the cell's \
         first classifier reads of the test images, whose labels it never saw; what a network of your own makes of the training images, \
         from a file. Drawn labels in every case.",
        "",
    ),
    term(
        "Labels told",
        &["labels told", "tell"],
        "",
        "What a classifier is told of an image in training: the class drawn with it, the whole exact posterior, the most probable class, \
         or the drawn class with a little of its weight spread over all.",
        "",
    ),
    term(
        "Ensemble",
        &["ensemble", "members"],
        "",
        "Several classifiers that are trained alike from different starts. Where they disagree, they have yet to learn.",
        "",
    ),
    term("Pool", &["pool"], "images", "Images of the world that training images are chosen from.", ""),
    term(
        "Shift of the base",
        &["base shift", "base"],
        "nats",
        "The noise that images are made from is moved or widened, by as much as the KL divergence says.",
        "",
    ),
    term("Corpus", &["corpus", "corpora"], "", "A set of real images with their classes.", ""),
    term(
        "Checkpoint",
        &["checkpoint"],
        "",
        "The weights of a network as they were saved, to go on from or to be used.",
        "",
    ),
    term(
        "Features",
        &["features", "feature net"],
        "",
        "What a trained network makes of an image before it decides: a list of numbers in which like images lie near.",
        "",
    ),
    term("Weights", &["weights"], "", "The trained numbers of a network, as a file.", ""),
    term(
        "Normalisation of images",
        &["normalisation"],
        "",
        "How a network wants the values of pixels scaled, as it had them in its training.",
        "(x - mean) / std",
    ),
    term(
        "Logits",
        &["logits"],
        "",
        "What a classifier gives for each class before it is turned into probabilities.",
        "q = softmax(logits)",
    ),
];
