// Runs the kernels of /kernels.json, or compiles those without a grid, and posts the outcome to /results.

const fromHex = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (byte) => parseInt(byte, 16));
const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

async function run(device, kernel) {
  const { STORAGE, UNIFORM, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
  const make = (hex, usage) => {
    const bytes = fromHex(hex);
    const buffer = device.createBuffer({ size: bytes.length, usage: usage | COPY_DST });
    device.queue.writeBuffer(buffer, 0, bytes);
    return buffer;
  };
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code: kernel.code });
  const types = kernel.bindings.map(({ binding, type }) => ({
    binding,
    visibility: GPUShaderStage.COMPUTE,
    buffer: { type },
  }));
  const layout = device.createBindGroupLayout({ entries: types });
  const pipeline = device.createComputePipeline({
    layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
    compute: { module, entryPoint: kernel.entry },
  });
  const buffers = kernel.bindings.map(({ type, content }) =>
    make(content, type === "uniform" ? UNIFORM : STORAGE | COPY_SRC));
  const entries = kernel.bindings.map(({ binding }, n) => ({
    binding,
    resource: { buffer: buffers[n] },
  }));
  const group = device.createBindGroup({ layout, entries });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  pass.dispatchWorkgroups(...kernel.grid);
  pass.end();
  const storage = buffers.filter((_, n) => kernel.bindings[n].type !== "uniform");
  const copies = storage.map((from) => {
    const copy = device.createBuffer({ size: from.size, usage: MAP_READ | COPY_DST });
    encoder.copyBufferToBuffer(from, 0, copy, 0, from.size);
    return copy;
  });
  device.queue.submit([encoder.finish()]);
  const error = await device.popErrorScope();
  if (error) {
    return { error: error.message };
  }
  const results = [];
  for (const copy of copies) {
    await copy.mapAsync(GPUMapMode.READ);
    results.push(toHex(new Uint8Array(copy.getMappedRange())));
  }
  return { buffers: results };
}

async function compile(device, { code }) {
  const { messages } = await device.createShaderModule({ code }).getCompilationInfo();
  const error = messages.find(({ type }) => type === "error");
  return error ? { error: error.message } : {};
}

async function runAll() {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) {
    return { error: "no adapter" };
  }
  const wanted = ["subgroups", "shader-f16"];
  const requiredFeatures = wanted.filter((feature) => adapter.features.has(feature));
  const device = await adapter.requestDevice({ requiredFeatures });
  const kernels = await (await fetch("/kernels.json")).json();
  const results = [];
  for (const kernel of kernels) {
    const has = kernel.features.every((feature) => requiredFeatures.includes(feature));
    const go = kernel.grid ? run : compile;
    results.push(has ? await go(device, kernel) : { skipped: true });
  }
  return { subgroupSize: adapter.info.subgroupMinSize ?? 1, results };
}

const outcome = await runAll().catch((error) => ({ error: String(error) }));
await fetch("/results", { method: "POST", body: JSON.stringify(outcome) });
