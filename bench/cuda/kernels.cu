// The kernels of examples/magpie in CUDA C++: what nvcc makes of them is what ours are compared with.
// `count` is that of bench/miri/launches.mi.

extern "C" __global__ void __launch_bounds__(256) saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void __launch_bounds__(256) reduce(const float *x, float *out) {
    __shared__ float tile[256];
    unsigned t = threadIdx.x;
    tile[t] = x[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned half = 128; half != 0; half >>= 1) {
        if (t < half) tile[t] += tile[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = tile[0];
}

extern "C" __global__ void __launch_bounds__(256) matmul(const float *a, const float *b, float *c, unsigned n) {
    __shared__ float as[16][16], bs[16][16];
    unsigned tx = threadIdx.x, ty = threadIdx.y;
    unsigned x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
    float sum = 0;
    for (unsigned k0 = 0; k0 < n; k0 += 16) {
        as[ty][tx] = y < n && k0 + tx < n ? a[y * n + k0 + tx] : 0;
        bs[ty][tx] = x < n && k0 + ty < n ? b[(k0 + ty) * n + x] : 0;
        __syncthreads();
        for (unsigned k = 0; k < 16; k++) sum += as[ty][k] * bs[k][tx];
        __syncthreads();
    }
    if (x < n && y < n) c[y * n + x] = sum;
}

extern "C" __global__ void __launch_bounds__(256) count(int *counts, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) counts[i] = counts[i] + 1;
}
