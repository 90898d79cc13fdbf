//! A look at a SPIR-V module before a driver sees it, because drivers may crash on a corrupt one.

/// First word of every module.
const MAGIC: u32 = 0x0723_0203;
/// The newest version that Vulkan 1.3 takes.
const VERSION_1_6: u32 = 0x0001_0600;
const OP_ENTRY_POINT: u32 = 15;
const OP_FUNCTION_END: u32 = 56;
const MODEL_GL_COMPUTE: u32 = 5;

/// The words of a module whose instructions fill it exactly and which has the compute entry point
/// `entry`.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(bytes: &[u8], entry: &str) -> Result<Vec<u32>, String> {
    let (chunks, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || chunks.len() < 5 {
        return Err(format!("a SPIR-V module of {} bytes", bytes.len()));
    }
    let words: Vec<u32> = chunks.iter().map(|&word| u32::from_le_bytes(word)).collect();
    if words[0] != MAGIC {
        return Err(format!("no SPIR-V module: it starts with {:#010x}", words[0]));
    }
    if words[1] > VERSION_1_6 {
        return Err(format!("SPIR-V version word {:#010x}; at most 1.6 is taken", words[1]));
    }
    let (mut rest, mut found, mut last) = (&words[5..], false, 0);
    while let Some(&first) = rest.first() {
        let (opcode, count) = (first & 0xFFFF, (first >> 16) as usize);
        let Some((instruction, after)) = rest.split_at_checked(count).filter(|_| count > 0) else {
            let at = words.len() - rest.len();
            return Err(format!("the SPIR-V instruction at word {at} has {count} words"));
        };
        found |= opcode == OP_ENTRY_POINT && is_entry(instruction, entry);
        (rest, last) = (after, opcode);
    }
    if last != OP_FUNCTION_END {
        return Err("the SPIR-V module does not end with the end of a function".to_string());
    }
    if found { Ok(words) } else { Err(format!("the SPIR-V module has no entry point `{entry}`")) }
}

/// Whether an `OpEntryPoint` is of a compute kernel with this name.
fn is_entry(instruction: &[u32], entry: &str) -> bool {
    let [_, model, _, name @ ..] = instruction else { return false };
    let bytes = name.iter().flat_map(|word| word.to_le_bytes());
    *model == MODEL_GL_COMPUTE && bytes.take_while(|&b| b != 0).eq(entry.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn module(instructions: &[u32]) -> Vec<u8> {
        let header = [MAGIC, VERSION_1_6, 0, 10, 0];
        header.iter().chain(instructions).flat_map(|w| w.to_le_bytes()).collect()
    }

    /// `OpEntryPoint GLCompute %1 "main"` and an `OpFunctionEnd`.
    const MAIN: [u32; 6] =
        [5 << 16 | OP_ENTRY_POINT, MODEL_GL_COMPUTE, 1, 0x6E69_616D, 0, 1 << 16 | OP_FUNCTION_END];

    #[test]
    fn modules_are_accepted_or_refused_with_a_reason() {
        assert_eq!(check(&module(&MAIN), "main").unwrap().len(), 11);
        let refused = |bytes: &[u8], entry: &str, text: &str| {
            let why = check(bytes, entry).unwrap_err();
            assert!(why.contains(text), "{why}");
        };
        refused(&module(&MAIN), "mai", "no entry point `mai`");
        refused(&module(&MAIN), "main2", "no entry point");
        refused(&module(&MAIN[..3]), "main", "at word 5 has 5 words");
        refused(&module(&MAIN[..5]), "main", "does not end");
        refused(&module(&[0]), "main", "has 0 words");
        refused(&module(&MAIN)[..18], "main", "18 bytes");
        refused(b"// text of a shader..", "main", "21 bytes");
        refused(&[0; 20], "main", "no SPIR-V module");
        let mut newer = module(&MAIN);
        newer[5] = 7;
        refused(&newer, "main", "version");
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes: Vec<u8>, words: Vec<u32>) {
            let _ = check(&bytes, "main");
            let _ = check(&module(&words), "main");
        }
    }
}
