//! The structs of `regatta.h`.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

use crate::OUTPUT_MOST;
use crate::layout::{Field, Layout, enumeration};

/// Defines structs, and the function `layouts`, which lists them.
macro_rules! structs {
    ($($c:ident as $(#[$attribute:meta])* $name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            #[doc = concat!("`", stringify!($c), "` of `regatta.h`.")]
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            $(#[$attribute])*
            pub struct $name {
                $(
                    #[doc = concat!("`", stringify!($field), "` of `", stringify!($c), "`.")]
                    pub $field: $type,
                )*
            }
        )*

        /// Returns the layouts of all structs and enumerations of the header.
        pub fn layouts() -> Vec<Layout> {
            vec![
                $(Layout {
                    name: stringify!($c),
                    size: size_of::<$name>(),
                    alignment: align_of::<$name>(),
                    fields: vec![$(Field::of::<$type>(stringify!($field), offset_of!($name, $field)),)*],
                },)*
                enumeration("rg_type"),
            ]
        }
    };
}

structs! {
    rg_group as #[derive(PartialEq, Eq)] Group {
        id: i32,
    }
    rg_status as #[derive(Default, PartialEq, Eq)] Status {
        source: i32,
        tag: i32,
        length: usize,
        error: i32,
        reserved: i32,
    }
    rg_request as #[derive(PartialEq, Eq)] Request {
        id: u64,
    }
    rg_view as View {
        base: *mut c_void,
        block: usize,
        count: usize,
        stride: isize,
    }
    rg_message as #[derive(PartialEq, Eq)] Message {
        id: u64,
    }
    rg_op as #[derive(PartialEq, Eq)] Op {
        id: i32,
    }
    rg_spawn_options as SpawnOptions {
        host: *const c_char,
        search: *const c_char,
        architecture: *const c_char,
        directory: *const c_char,
        environment: *const *const c_char,
        elsewhere: i32,
        output: i32,
        output_tag: i32,
        output_group: Group,
        orphans: i32,
        on_behalf: i32,
        through: *const c_char,
        output_to: i32,
        reserved: i32,
    }
    rg_output as Output {
        mark: u32,
        tid: i32,
        stream: i32,
        length: u32,
        text: [c_char; OUTPUT_MOST as usize],
    }
    rg_task as Task {
        tid: i32,
        parent: i32,
        host: i32,
        pid: i32,
        program: [c_char; 240],
    }
    rg_host as Host {
        host: i32,
        cores: i32,
        tasks: i32,
        alive: i32,
        name: [c_char; 64],
        architecture: [c_char; 32],
        speed: i32,
        reserved: i32,
    }
    rg_start as Start {
        mark: u32,
        tid: i32,
        ticket: u32,
        arguments: u32,
        environment: u32,
        reserved: u32,
    }
    rg_start_hosts as StartHosts {
        mark: u32,
        request: u32,
        hosts: u32,
        reserved: u32,
    }
    rg_event as Event {
        mark: u32,
        kind: i32,
        tid: i32,
        host: i32,
        how: i32,
        value: i32,
        watch: i32,
        reserved: i32,
        name: [c_char; 64],
    }
    rg_entry as Entry {
        index: i32,
        owner: i32,
        flags: i32,
        length: u32,
        name: [c_char; 112],
    }
    rg_named_group as NamedGroup {
        members: i32,
        waiting: i32,
        wanted: i32,
        reserved: i32,
        name: [c_char; 112],
    }
}
