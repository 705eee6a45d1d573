// Package embedded is the driver of package graph on Pebble, in a directory of
// its own. It keeps the rows of a lineage.State, which has every rule; this
// package knows how rows lie on disk.
//
// # Layout
//
// The version of the layout is in the row "v"; a directory with a greater one is
// refused, one with a smaller one is migrated when it is opened (migrate.go).
//
//	v                              layout, identity version
//	l                              where the log ended when the graph was begun, the log's ID
//	k <commit 8>                   greatest place in the log merged by that commit, beginning of that body's ID
//	f                              the first commit whose row is kept, if any was removed
//	c <table 1>                    how many rows a table has, of those counted
//	p <lane 8> <log>               position of a lane of a log
//	t <table 1> <key>              a row
//	g <cluster 1> <owner 16 or 24> a page: the rows of several tables that have one owner
//
// Tables whose rows have one owner (an attempt, a run, a generation, a dataset...)
// are clustered: their rows lie together in one page, so that an event writes a
// few pages and not thirty rows, and a walk reads one page a dataset. A page that
// gets long gives its rows away: they lie as rows of their own from then on
// (page.go). IDs that many rows name are written as short numbers: see
// lineage.NumbersTable.
//
// # Transactions
//
// One writer at a time merges a batch, settles some of what follows and commits
// both as one Pebble batch. It is not synced: the log is what is durable, and
// after a crash it is read again from the position that the graph has, which was
// committed with what it speaks of. Readers read a Pebble snapshot each, and never
// wait for the writer.
//
// Each commit says in a row of its own how far it came, though the position lags.
// Open compares the last of them with the log: a graph that has what the log has
// not must not be followed on (ErrForeign). The rows of the commits since the last
// opening have no hole unless something was lost on the disk.
//
// Rows that change with nearly every event (the times at which a facet was given)
// stay in memory for some batches; the position on disk is that before the first
// of them.
//
// # Corruption
//
// What cannot be read as it was written makes every call fail with
// graph.ErrCorrupt from then on, and closes Corrupt (corrupt.go). That is noted in
// the directory, so that the next opening says it too.
package embedded
