// Paints 8-bit levels of images, where a network left them, into cells of a texture. One instance is one image.

struct Tile {
    // Upper left pixel of its cell.
    corner: vec2<u32>,
    // Number of its first level.
    first: u32,
}

struct Sheet {
    // Width and height of an image, pixels.
    image: vec2<u32>,
    // Width and height of the texture, pixels.
    texture: vec2<u32>,
    channels: u32,
}

// Batches of images [N, C, H, W]: whole numbers 0 … 255.
@group(0) @binding(0) var<storage, read> levels: array<f32>;
@group(0) @binding(1) var<storage, read> tiles: array<Tile>;
@group(0) @binding(2) var<uniform> sheet: Sheet;

struct Pixel {
    @builtin(position) position: vec4<f32>,
    @location(0) @interpolate(flat) tile: u32,
}

@vertex
fn place(@builtin(vertex_index) vertex: u32, @builtin(instance_index) tile: u32) -> Pixel {
    let corner = tiles[tile].corner + vec2<u32>(vertex & 1u, vertex >> 1u) * sheet.image;
    let share = vec2<f32>(corner) / vec2<f32>(sheet.texture);
    return Pixel(vec4<f32>(2.0 * share.x - 1.0, 1.0 - 2.0 * share.y, 0.0, 1.0), tile);
}

@fragment
fn paint(pixel: Pixel) -> @location(0) vec4<f32> {
    let tile = tiles[pixel.tile];
    let at = vec2<u32>(pixel.position.xy) - tile.corner;
    let area = sheet.image.x * sheet.image.y;
    let here = tile.first + at.y * sheet.image.x + at.x;
    var colour = vec3<f32>(levels[here]);
    if sheet.channels >= 3u {
        colour.y = levels[here + area];
        colour.z = levels[here + 2u * area];
    }
    return vec4<f32>(colour / 255.0, 1.0);
}
