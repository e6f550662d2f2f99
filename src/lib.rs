//! Centavo's door: HTTP, operations, rails, command line, wiring.
