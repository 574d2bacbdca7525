//! Functions of C as functions of a library made by Rust, which exports only what is written in Rust.

/// Exports functions that take variable lists of arguments: each is a jump to the function of C that is named behind it.
#[macro_export]
macro_rules! jumps {
    ($($name:ident => $target:ident),* $(,)?) => { $(
        // All registers and the stack reach the target as they are.
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
