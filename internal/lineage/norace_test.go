//go:build !race

package lineage_test

const raceEnabled = false
