//! The address of every function of the C ABI, for programs that run in memory.

use crate::{
    append, array, callable, characters, codes, fs, gpu, handle, io, map, math, object, os, panic,
    string, string_builder, text, time,
};
use magpie_types::abi::RtFn;

pub(crate) use crate::signature::Entry;

/// The address of a runtime function.
pub fn symbol_address(f: RtFn) -> *const u8 {
    any_entry(f).map_or(std::ptr::null(), |entry| entry.address.cast())
}

/// The function of a row.
pub(crate) fn any_entry(f: RtFn) -> Option<Entry> {
    entry(f).or_else(|| gpu::abi::entry(f))
}

/// The function of a row that does not belong to the devices.
///
/// Each row of the table stands here or, for the `Gpu` rows, in `gpu::abi::entry`;
/// neither match has a wildcard, so a new row does not compile until it has an implementation.
fn entry(f: RtFn) -> Option<Entry> {
    Some(match f {
        RtFn::Alloc => Entry::of1(object::mp_rt_alloc),
        RtFn::Retain => Entry::of1(object::mp_rt_retain),
        RtFn::Release => Entry::of1(object::mp_rt_release),
        RtFn::WeakDowngrade => Entry::of1(object::mp_rt_weak_downgrade),
        RtFn::WeakUpgrade => Entry::of1(object::mp_rt_weak_upgrade),
        RtFn::WeakRetain => Entry::of1(object::mp_rt_weak_retain),
        RtFn::WeakRelease => Entry::of1(object::mp_rt_weak_release),
        RtFn::RetainValue => Entry::of2(object::mp_rt_retain_value),
        RtFn::ReleaseValue => Entry::of2(object::mp_rt_release_value),
        RtFn::HandleClone => Entry::of1(handle::mp_rt_handle_clone),
        RtFn::HandleUnique => Entry::of1(handle::mp_rt_handle_unique),
        RtFn::StrAppend => Entry::of2(append::mp_rt_str_append),
        RtFn::StrAppendI64 => Entry::of2(append::mp_rt_str_append_i64),
        RtFn::StrAppendU64 => Entry::of2(append::mp_rt_str_append_u64),
        RtFn::StrAppendFloat => Entry::of3(append::mp_rt_str_append_float),
        RtFn::StrAppendBool => Entry::of2(append::mp_rt_str_append_bool),
        RtFn::StrTransform => Entry::of2(text::mp_rt_str_transform),
        RtFn::StrCount => Entry::of1(characters::mp_rt_str_count),
        RtFn::StrFind => Entry::of3(text::mp_rt_str_find),
        RtFn::StrCharAt => Entry::of3(characters::mp_rt_str_char_at),
        RtFn::StrCharFrom => Entry::of2(characters::mp_rt_str_char_from),
        RtFn::StrContains => Entry::of2(text::mp_rt_str_contains),
        RtFn::StrToI64 => Entry::of2(text::mp_rt_str_to_i64),
        RtFn::StrToF64 => Entry::of2(text::mp_rt_str_to_f64),
        RtFn::StrCodeAt => Entry::of3(codes::mp_rt_str_code_at),
        RtFn::StrCodeFrom => Entry::of2(codes::mp_rt_str_code_from),
        RtFn::StrCode => Entry::of1(codes::mp_rt_str_code),
        RtFn::CodeText => Entry::of1(codes::mp_rt_code_text),
        RtFn::CodeLen => Entry::of1(codes::mp_rt_code_len),
        RtFn::CodeToI64 => Entry::of2(codes::mp_rt_code_to_i64),
        RtFn::CodeTransform => Entry::of2(codes::mp_rt_code_transform),
        RtFn::StrAppendCode => Entry::of2(codes::mp_rt_str_append_code),
        RtFn::StrContainsCode => Entry::of2(codes::mp_rt_str_contains_code),
        RtFn::Eprint => Entry::of1(io::mp_rt_eprint),
        RtFn::Panic => Entry::never1(panic::mp_rt_panic),
        RtFn::PanicBuiltin => Entry::never4(panic::mp_rt_panic_builtin),
        RtFn::StrConcat => Entry::of2(string::mp_rt_str_concat),
        RtFn::StrLen => Entry::of1(string::mp_rt_str_len),
        RtFn::StrEq => Entry::of2(string::mp_rt_str_eq),
        RtFn::StrCompare => Entry::of2(string::mp_rt_str_compare),
        RtFn::StrSlice => Entry::of3(string::mp_rt_str_slice),
        RtFn::StrBytes => Entry::of2(string::mp_rt_str_bytes),
        RtFn::StrParseI64 => Entry::of3(string::mp_rt_str_parse_i64),
        RtFn::StrParseU64 => Entry::of3(string::mp_rt_str_parse_u64),
        RtFn::StrParseF64 => Entry::of3(string::mp_rt_str_parse_f64),
        RtFn::StrParseBool => Entry::of3(string::mp_rt_str_parse_bool),
        RtFn::SbNew => Entry::of0(string_builder::mp_rt_sb_new),
        RtFn::SbAppendStr => Entry::of2(string_builder::mp_rt_sb_append_str),
        RtFn::SbAppendI64 => Entry::of2(string_builder::mp_rt_sb_append_i64),
        RtFn::SbAppendU64 => Entry::of2(string_builder::mp_rt_sb_append_u64),
        RtFn::SbAppendF64 => Entry::of2(string_builder::mp_rt_sb_append_f64),
        RtFn::SbAppendBool => Entry::of2(string_builder::mp_rt_sb_append_bool),
        RtFn::SbBuild => Entry::of1(string_builder::mp_rt_sb_build),
        RtFn::ArrNew => Entry::of2(array::mp_rt_arr_new),
        RtFn::ArrZeroed => Entry::of2(array::mp_rt_arr_zeroed),
        RtFn::ArrPush => Entry::of2(array::mp_rt_arr_push),
        RtFn::ArrGrow => Entry::of1(array::mp_rt_arr_grow),
        RtFn::ArrPop => Entry::of2(array::mp_rt_arr_pop),
        RtFn::ArrSlice => Entry::of3(array::mp_rt_arr_slice),
        RtFn::ArrMove => Entry::of3(array::mp_rt_arr_move),
        RtFn::ArrReverse => Entry::of1(array::mp_rt_arr_reverse),
        RtFn::ArrContains => Entry::of3(array::mp_rt_arr_contains),
        RtFn::ArrSort => Entry::of2(array::mp_rt_arr_sort),
        RtFn::MapNew => Entry::of4(map::mp_rt_map_new),
        RtFn::MapSet => Entry::of3(map::mp_rt_map_set),
        RtFn::MapGet => Entry::of2(map::mp_rt_map_get),
        RtFn::MapDelete => Entry::of3(map::mp_rt_map_delete),
        RtFn::MapLen => Entry::of1(map::mp_rt_map_len),
        RtFn::MapKeys => Entry::of1(map::mp_rt_map_keys),
        RtFn::MapValues => Entry::of1(map::mp_rt_map_values),
        RtFn::CallableNew => Entry::of2(callable::mp_rt_callable_new),
        RtFn::Print => Entry::of1(io::mp_rt_print),
        RtFn::Println => Entry::of1(io::mp_rt_println),
        RtFn::EndLine => Entry::of0(io::mp_rt_end_line),
        RtFn::Eprintln => Entry::of1(io::mp_rt_eprintln),
        RtFn::PrintlnI64 => Entry::of1(io::mp_rt_println_i64),
        RtFn::PrintlnU64 => Entry::of1(io::mp_rt_println_u64),
        RtFn::PrintlnF64 => Entry::of1(io::mp_rt_println_f64),
        RtFn::PrintlnBool => Entry::of1(io::mp_rt_println_bool),
        RtFn::Readln => Entry::of0(io::mp_rt_readln),
        RtFn::NowNs => Entry::of0(time::mp_rt_now_ns),
        RtFn::SleepMs => Entry::of1(time::mp_rt_sleep_ms),
        RtFn::OsArgs => Entry::of1(os::mp_rt_os_args),
        RtFn::OsEnvVar => Entry::of2(os::mp_rt_os_env_var),
        RtFn::OsExit => Entry::never1(os::mp_rt_os_exit),
        RtFn::OsCwd => Entry::of0(os::mp_rt_os_cwd),
        RtFn::FsReadBytes => Entry::of4(fs::mp_rt_fs_read_bytes),
        RtFn::FsWriteBytes => Entry::of3(fs::mp_rt_fs_write_bytes),
        RtFn::FsReadText => Entry::of3(fs::mp_rt_fs_read_text),
        RtFn::FsWriteText => Entry::of3(fs::mp_rt_fs_write_text),
        RtFn::HashStr => Entry::of1(string::mp_rt_hash_str),
        RtFn::HashI64 => Entry::of1(string::mp_rt_hash_i64),
        RtFn::MathF64 => Entry::of3(math::mp_rt_math_f64),
        RtFn::MathF32 => Entry::of3(math::mp_rt_math_f32),
        RtFn::GpuInit
        | RtFn::GpuErrorNew
        | RtFn::GpuErrorKind
        | RtFn::GpuErrorMessage
        | RtFn::GpuErrorBackend
        | RtFn::GpuErrorCode
        | RtFn::GpuDeviceCount
        | RtFn::GpuDeviceDefault
        | RtFn::GpuDeviceByIndex
        | RtFn::GpuDeviceName
        | RtFn::GpuDeviceBackends
        | RtFn::GpuDeviceMaxWorkgroupSize
        | RtFn::GpuDeviceMaxSharedBytes
        | RtFn::GpuDeviceMaxBuffers
        | RtFn::GpuDeviceWarpSize
        | RtFn::GpuDeviceMemoryTotal
        | RtFn::GpuDeviceMemoryAvailable
        | RtFn::GpuDeviceSync
        | RtFn::GpuBufferNew
        | RtFn::GpuBufferFromArray
        | RtFn::GpuBufferToArray
        | RtFn::GpuBufferLen
        | RtFn::GpuBufferCopy
        | RtFn::GpuBufferWrite
        | RtFn::GpuBufferRead
        | RtFn::GpuLaunchSync
        | RtFn::GpuLaunchSyncFallback
        | RtFn::GpuLaunchAsync
        | RtFn::GpuFenceWait
        | RtFn::GpuProfileBegin
        | RtFn::GpuProfileEnd
        | RtFn::GpuProfileMarkBegin
        | RtFn::GpuProfileMarkEnd
        | RtFn::GpuProfileExportChrome
        | RtFn::GpuProfileAvailableCounters
        | RtFn::GpuProfileEnableCounters
        | RtFn::GpuProfileReadCounters
        | RtFn::GpuProfileMemoryStats
        | RtFn::GpuResidentNew
        | RtFn::GpuResidentPart
        | RtFn::GpuResidentZeros
        | RtFn::GpuResidentCell
        | RtFn::GpuResidentScratch
        | RtFn::GpuResidentBuffer
        | RtFn::GpuResidentRead
        | RtFn::GpuResidentAssign
        | RtFn::GpuResidentUnfit
        | RtFn::GpuResidentRestore
        | RtFn::GpuResidentLen
        | RtFn::GpuDeviceOrStop
        | RtFn::GpuIsAvailable
        | RtFn::GpuStop
        | RtFn::GpuTelemetryReset
        | RtFn::GpuTelemetryLaunch
        | RtFn::GpuTelemetry
        | RtFn::GpuProfileLaunch => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use magpie_types::abi::{AbiReturn, AbiType};

    #[test]
    fn every_row_has_an_address_of_its_own() {
        let mut addresses: Vec<_> = RtFn::ALL.iter().map(|&f| symbol_address(f)).collect();
        assert!(addresses.iter().all(|address| !address.is_null()));
        addresses.sort();
        addresses.dedup();
        assert_eq!(addresses.len(), RtFn::ALL.len());
    }

    #[test]
    fn every_function_has_the_signature_of_its_row() {
        for &f in RtFn::ALL {
            let Some(Entry { params, ret, .. }) = any_entry(f) else {
                panic!("{f:?} has no function")
            };
            let (outs, expected_ret) = match f.ret() {
                AbiReturn::Never => (0, None),
                AbiReturn::Void => (0, Some(None)),
                AbiReturn::Value(ty) => (0, Some(Some(ty))),
                AbiReturn::Status => (1, Some(Some(AbiType::I32))),
                AbiReturn::StatusOut(_) => (2, Some(Some(AbiType::I32))),
                AbiReturn::Maybe(_) => (1, Some(Some(AbiType::Bool))),
            };
            let outs = std::iter::repeat_n(AbiType::Ptr, outs);
            let expected: Vec<_> = f.params().iter().map(|&(_, ty)| ty).chain(outs).collect();
            let params: Vec<_> = params.iter().filter_map(|ty| ty.abi).collect();
            assert_eq!((params, ret.map(|ty| ty.abi)), (expected, expected_ret), "{f:?}");
        }
    }
}
