// A decoder that a file holds: from the numbers of capsules to an image, step by step.
function fromBase64(text) {
  const letters = atob(text);
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}

// Numbers in half precision: a sign, five bits of exponent, ten of fraction.
function fromHalves(text) {
  const view = new DataView(fromBase64(text).buffer);
  return Float32Array.from({ length: view.byteLength / 2 }, (_, place) => {
    const bits = view.getUint16(2 * place, true);
    const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -14 * fraction / 1024;
  });
}

const STEPS = {
  relu: ({ values, shape }) => ({ values: values.map((value) => Math.max(0, value)), shape }),
  sigmoid: ({ values, shape }) => ({ values: values.map((value) => 1 / (1 + Math.exp(-value))), shape }),
  dense({ values }, { weight, bias, shape }) {
    const made = Float32Array.from(bias);
    for (let row = 0; row < made.length; row++) {
      let sum = bias[row];
      for (let column = 0; column < values.length; column++) sum += weight[row * values.length + column] * values[column];
      made[row] = sum;
    }
    return { values: made, shape };
  },
  scale({ values, shape }, { factor, summand }) {
    const size = shape[1] * shape[2];
    return { values: values.map((value, place) => value * factor[Math.floor(place / size)] + summand[Math.floor(place / size)]), shape };
  },
  // A transposed convolution with a padding of 1: each pixel adds its kernel to the larger image.
  grow({ values, shape: [channels, height, width] }, { weight, bias, stride, kernel }) {
    const down = height * stride, across = width * stride, made = new Float64Array(bias.length * down * across);
    for (let to = 0; to < bias.length; to++) {
      made.fill(bias[to], to * down * across, (to + 1) * down * across);
      for (let from = 0; from < channels; from++) {
        for (let tap = 0; tap < kernel * kernel; tap++) {
          const factor = weight[(from * bias.length + to) * kernel * kernel + tap];
          const below = Math.floor(tap / kernel) - 1, right = tap % kernel - 1;
          for (let y = 0; y < height; y++) {
            const row = y * stride + below;
            if (row < 0 || row >= down) continue;
            for (let x = 0; x < width; x++) {
              const column = x * stride + right;
              if (column >= 0 && column < across) {
                made[(to * down + row) * across + column] += factor * values[(from * height + y) * width + x];
              }
            }
          }
        }
      }
    }
    return { values: Float32Array.from(made), shape: [bias.length, down, across] };
  },
};

let decoder = null; // its numbers, read once
function readDecoder() {
  decoder ??= {
    ...DATA.decoder,
    ink: fromBase64(DATA.decoder.ink),
    steps: DATA.decoder.steps.map((step) => step.weight
      ? { ...step, weight: fromHalves(step.weight), bias: fromHalves(step.bias) } : step),
  };
  return decoder;
}

// The pixels, channel by channel, that the capsule of class `chosen` is drawn as.
function decode(poses, chosen) {
  const { takes, steps, shape: [channels, height, width] } = readDecoder();
  const given = {
    all: () => poses.flat(),
    chosen: () => poses[chosen],
    masked: () => poses.flatMap((row, number) => (number === chosen ? row : row.map(() => 0))),
  }[takes]();
  const { values, shape } = steps.reduce((state, step) => STEPS[step.kind](state, step), { values: Float32Array.from(given) });
  if (!shape) return values;
  const cut = new Float32Array(channels * height * width); // the image may have grown beyond its size
  cut.forEach((_, number) => {
    const channel = Math.floor(number / (height * width)), row = Math.floor(number / width) % height;
    cut[number] = values[(channel * shape[1] + row) * shape[2] + number % width];
  });
  return cut;
}

function drawDecoded(canvas, poses, chosen) {
  const { ink, shape: [channels, height, width] } = readDecoder();
  const pixels = decode(poses, chosen), size = height * width;
  const within = (value) => Math.min(1, Math.max(0, value));
  Object.assign(canvas, { width, height });
  const picture = new ImageData(width, height);
  for (let place = 0; place < size; place++) {
    const tone = 3 * Math.min(255, Math.floor(256 * within(pixels[place])));
    for (let colour = 0; colour < 3; colour++) {
      picture.data[4 * place + colour] = channels === 3 ? Math.round(255 * within(pixels[colour * size + place])) : ink[tone + colour];
    }
    picture.data[4 * place + 3] = 255;
  }
  canvas.getContext("2d").putImageData(picture, 0, 0);
}
