//! Lays out clusters that are written through Git: paths and texts of files, and the trees and commits that hold them. An object is
//! named by its content, so equal files of many clusters are one, and two states are compared by names alone.

pub mod commit;
pub mod files;
pub mod layout;
pub mod next;
pub mod object;
pub mod tree;
