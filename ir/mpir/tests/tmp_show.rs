use magpie_mpir::testing::*;
use magpie_mpir::passes::*;
use magpie_mpir::*;
#[test]
fn show() {
    let mut counts = std::collections::BTreeMap::new();
    for seed in 0..300 {
        let k = random_kernel(seed, &KernelConfig::all());
        for f in &k.module.fns { for b in &f.blocks { for &i in &b.insts { *counts.entry(f.inst(i).op.name()).or_insert(0) += 1; } } }
        if seed == 7 {
            println!("{}", print_module(&k.module));
            let mut m = k.module.clone();
            inline_calls(&mut m, &mut vec![]);
            Pipeline::new().optimize_device(&mut m, k.kernel);
            println!("{}", print_fn(&m, m.func(k.kernel)));
        }
    }
    println!("{counts:?}");
}
