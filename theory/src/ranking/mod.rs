//! Every layout of a depth, ranked by how fast it trains.
