fn main() {
    let b = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    let w: Vec<u32> = b.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect();
    println!("{}", magpie_gpu_spirv::disassembly::disassemble(&w).unwrap());
}
