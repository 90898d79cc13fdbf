"""Compiles `chain` of the module `chain` for every line of standard input, and prints its size.

A compile starts from the source: TRITON_ALWAYS_COMPILE must be set.
"""

import sys

sys.path.insert(0, ".")

import triton
from chain import chain
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGET = GPUTarget("cuda", 90, 32)
SIGNATURE = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}

for _ in sys.stdin:
    source = ASTSource(fn=chain, signature=SIGNATURE, constexprs={"BLOCK": 64})
    compiled = triton.compile(source, target=TARGET, options={"num_warps": 2})
    print(len(compiled.asm["cubin"]), flush=True)
