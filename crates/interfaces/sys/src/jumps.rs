//! Exports of C functions from a Rust library. A Rust library exports only symbols that are defined in Rust.

/// Exports variadic functions: each is a jump to the C function after the `=>`.
#[macro_export]
macro_rules! jumps {
    ($($name:ident => $target:ident),* $(,)?) => { $(
        // The jump changes no register and not the stack, so that the target gets all arguments.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        extern "C" fn $name() {
            #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
            ::std::arch::naked_asm!("jmp {}", sym $target);
            #[cfg(any(target_arch = "aarch64", target_arch = "arm"))]
            ::std::arch::naked_asm!("b {}", sym $target);
            #[cfg(any(target_arch = "riscv64", target_arch = "riscv32"))]
            ::std::arch::naked_asm!("tail {}", sym $target);
        }
    )* };
}
