// What clang's checks for undefined behaviour call (-fsanitize-minimal-runtime).
#pragma once

#include "launch.hpp"

#define MAGPIE_UNDEFINED(name)                                                        \
    extern "C" __attribute__((weak, visibility("hidden"))) void __ubsan_handle_##name##_minimal() { \
        magpie::report(magpie::undefined_arithmetic);                          \
    }
MAGPIE_UNDEFINED(add_overflow)
MAGPIE_UNDEFINED(sub_overflow)
MAGPIE_UNDEFINED(mul_overflow)
MAGPIE_UNDEFINED(negate_overflow)
MAGPIE_UNDEFINED(divrem_overflow)
MAGPIE_UNDEFINED(shift_out_of_bounds)
MAGPIE_UNDEFINED(out_of_bounds)
MAGPIE_UNDEFINED(builtin_unreachable)
MAGPIE_UNDEFINED(load_invalid_value)
MAGPIE_UNDEFINED(float_cast_overflow)
MAGPIE_UNDEFINED(type_mismatch)
MAGPIE_UNDEFINED(pointer_overflow)
#undef MAGPIE_UNDEFINED
