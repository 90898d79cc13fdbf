
/* Functions that compiled programs do not call. */

/* Registers kernels; everything is copied. */
void mp_rt_gpu_register_kernels(const MpRtGpuKernelEntry* entries, uint32_t count);

/* Releases the strings of a gpu.TError: its drop_fn. */
void mp_rt_gpu_error_drop(MpRtHeader* err);

/* Older names. */
uint32_t mp_rt_gpu_device_count(void);
int32_t mp_rt_gpu_device_default(MpRtHeader** out, MpRtHeader** out_err);
int32_t mp_rt_gpu_buffer_new(MpRtHeader* dev, uint32_t elem_type_id, uint64_t elem_size,
                             uint64_t len, uint32_t usage_flags, MpRtHeader** out,
                             MpRtHeader** out_err);

#ifdef __cplusplus
}
#endif

#endif
