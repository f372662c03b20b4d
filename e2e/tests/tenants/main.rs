//! Attacks of users of the hub who may do everything in their project's namespace, on an operator installed by its charts.

mod approving;
mod charts;
mod clouds;
mod gates;
mod generated;
mod going_back;
mod guesses;
mod namespaces;
mod others;
mod outlives;
mod reach;
mod secrets;
mod sees;
mod world;
