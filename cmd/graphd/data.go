package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/graphd/graphd/internal/ledger"
	"github.com/graphd/graphd/internal/node"
)

// dataFlags say where a command keeps its log and its graph.
type dataFlags struct {
	dir      string
	store    string
	budget   size
	collapse bool
}

// add adds the flags of a server.
func (d *dataFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&d.dir, "data", "graphd-data", "the `DIR` in which the log and the graph are kept")
	fs.StringVar(&d.store, "store", node.Embedded, "embedded: log and graph in --data; memory: gone when the process ends")
	fs.Var(&d.budget, "disk-budget", "what the log may take, on disk or with --store memory in memory, at least 128MiB; 0 is no bound")
	fs.BoolVar(&d.collapse, "collapse-names", true, "take partitions and dates in paths for parts of one dataset")
}

// addOffline adds the flags of a command that can do without a server.
func (d *dataFlags) addOffline(fs *pflag.FlagSet) {
	d.store = node.Embedded // what is kept in memory is a server's alone
	fs.StringVar(&d.dir, "data", "", "the data `DIR` of a graphd that does not run, in place of --to")
	fs.Var(&d.budget, "disk-budget", "with --data: what the log may take on disk, at least 128MiB; 0 is no bound")
	fs.BoolVar(&d.collapse, "collapse-names", true, "with --data: take partitions and dates in paths for parts of one dataset, as that graphd does")
}

func (d *dataFlags) check() error {
	if d.store != node.Embedded && d.store != node.Memory {
		return &usageError{fmt.Errorf("--store %s: want %s or %s", d.store, node.Embedded, node.Memory)}
	}
	if d.store == node.Embedded && d.dir == "" {
		return &usageError{errors.New("--data must name a directory")}
	}
	if least := size(ledger.MinBudget); d.budget != 0 && d.budget < least {
		return &usageError{fmt.Errorf("--disk-budget %s: want at least %s, or 0 for no bound", &d.budget, &least)}
	}
	return nil
}

// shown is the directory, "" where none is used.
func (d *dataFlags) shown() string {
	if d.store == node.Memory {
		return ""
	}
	return d.dir
}

// open opens what the flags name.
func (d *dataFlags) open(opt node.Options) (*node.Node, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	names := nameRules(d.collapse)
	opt.Store, opt.Dir, opt.Names, opt.Budget = d.store, d.dir, &names, int64(d.budget)
	n, err := node.Open(opt)
	if errors.Is(err, ledger.ErrCorrupt) {
		return nil, fmt.Errorf("%w. graphd has thrown nothing away: restore %s from a backup", err, printable(filepath.Join(d.dir, "ledger")))
	}
	return n, err
}
