// Paints a heat map where its values were computed: a pixel for each of them.

struct Map {
    // Columns and rows of values.
    size: vec2<u32>,
    // Number of the first value.
    first: u32,
    // The value at the upper end of the colours; minus that at the lower end.
    extent: f32,
}

@group(0) @binding(0) var<storage, read> values: array<f32>;
// RGBA, 8 bits each, from the lower end to the upper.
@group(0) @binding(1) var<storage, read> ramp: array<u32>;
@group(0) @binding(2) var<uniform> map: Map;

@vertex
fn place(@builtin(vertex_index) vertex: u32) -> @builtin(position) vec4<f32> {
    let corner = vec2<f32>(vec2<u32>(vertex & 1u, vertex >> 1u));
    return vec4<f32>(2.0 * corner.x - 1.0, 1.0 - 2.0 * corner.y, 0.0, 1.0);
}

@fragment
fn paint(@builtin(position) position: vec4<f32>) -> @location(0) vec4<f32> {
    let at = vec2<u32>(position.xy);
    let share = clamp(values[map.first + at.y * map.size.x + at.x] / map.extent, -1.0, 1.0);
    let last = f32(arrayLength(&ramp) - 1u);
    return unpack4x8unorm(ramp[u32(floor(0.5 * (share + 1.0) * last + 0.5))]);
}
