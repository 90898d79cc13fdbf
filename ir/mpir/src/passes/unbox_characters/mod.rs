//! Characters without objects.
//!
//! In a language without a type of characters, one is a text. Most programs only compare it, look
//! for it, append it: for that its code point is enough, which is found in the bytes of the text
//! that it comes from.
//!
//! ```text
//! %c: Str = rt.call mp_rt_str_char_at %s, %i         %c: i32 = rt.call mp_rt_str_code_at %s, %i
//! %e: bool = rt.call mp_rt_str_eq %c, Str "e"   ⇒    %e: bool = icmp.eq %c, i32 101
//! arr.push %list, %c                                 %t: Str = rt.call mp_rt_code_text %c
//!                                                    arr.push %list, %t
//! ```
//!
//! A value is a code when it is the text of one character or none and a character can be in it: what
//! is read from a text, copies and views of it, phis, and also parameters and results of functions
//! that are only called. Where something else needs the text, it is made at the closest place that
//! comes before all such uses and is in no loop that the character is not in.

mod find;
mod place;
mod rewrite;

use crate::Module;
use find::Characters;

/// Makes codes of the texts that are characters. Works on host functions that are not lowered,
/// before `lower_arc`.
pub fn unbox_characters(m: &mut Module) -> bool {
    if !find::has_characters(m) {
        return false;
    }
    find::drop_unreachable_blocks(m);
    let characters = Characters::find(m);
    rewrite::rewrite(m, &characters);
    true
}
