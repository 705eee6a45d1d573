// Package lineage concludes from facts: which attempts are one logical run, what
// state it is in, what it asserts, and what lineage is current. It is pure and
// holds every rule of docs/identity.md beyond the identity of one event.
//
// Two functions give the same answer. Fold computes the whole graph of a set of
// events at once; it is short, keeps nothing, and is the oracle of every test.
// State.Merge and State.Settle keep the graph up to date, at a cost that follows
// what changed; a store provides the State's tables.
//
// The levels, each from the one before:
//
//	attempt.go   an attempt's observations: slot, parent, episodes, states
//	unite.go     what the events of an episode say together: derivations, mappings
//	place.go     where an attempt stands under its ancestors: its logical run
//	run.go       a logical run's attempts: its state and its word
//	current.go   which generation's word is current for an output
//	walk.go      ancestry over what is current
//
// fold.go, and settle.go with settleruns.go, put them together; merge.go adds facts; state.go lists
// the tables; snapshot.go writes the canonical text of a graph.
package lineage
