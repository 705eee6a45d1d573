package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/graphd/graphd/internal/ledger"
	"github.com/graphd/graphd/internal/node"
	"github.com/graphd/graphd/internal/telemetry"
)

// placeFlags say which graph a command works on: that of a server, or that of a
// directory which no server has open.
type placeFlags struct {
	remoteFlags
	data dataFlags
}

// The flags that are of no use with --data, and those that are of none without.
var (
	remoteOnly = []string{"api-key", "retry-for"}
	dataOnly   = []string{"disk-budget", "collapse-names"}
)

func (f *placeFlags) add(fs *pflag.FlagSet) {
	f.remoteFlags.add(fs)
	f.data.addOffline(fs)
}

// isLocal reports whether the flags name a directory. What is on the command line
// counts before what is in the environment, and --data and --to exclude each
// other; with neither it is the server at defaultServer.
func (f *placeFlags) isLocal(fs *pflag.FlagSet) (bool, error) {
	data, to := givenBy(fs, "data"), givenBy(fs, "to")
	if data == to && data != byDefault {
		return false, &usageError{errors.New("--data and --to exclude each other: the one is a directory that no graphd has open, the other a graphd that runs")}
	}
	local := data > to
	if local && f.data.dir == "" {
		return false, &usageError{errors.New("--data must name a directory")}
	}
	other, wants := dataOnly, "--data"
	if local {
		other, wants = remoteOnly, "--to"
	}
	for _, name := range other {
		if givenBy(fs, name) == byCommandLine {
			return false, &usageError{fmt.Errorf("--%s goes with %s", name, wants)}
		}
	}
	return local, nil
}

// openOffline opens the node of a directory; keepGraph is node.Options'. Warnings
// go to w.
func (f *placeFlags) openOffline(w io.Writer, keepGraph bool) (*node.Node, error) {
	logger, err := telemetry.NewLogger(w, telemetry.LogOptions{Level: slog.LevelWarn.String(), Format: "text"})
	if err != nil {
		return nil, err
	}
	n, err := f.data.open(node.Options{Logger: logger, KeepGraph: keepGraph})
	if errors.Is(err, ledger.ErrLocked) {
		return nil, fmt.Errorf("another graphd has %s open: stop that one, or reach it with --to URL (%s unless it was told otherwise)",
			printable(f.data.dir), defaultServer)
	}
	return n, err
}

// checkThere tells of a directory in which no graphd ever was: to read it would make
// one.
func (f *placeFlags) checkThere() error {
	if _, err := os.Stat(filepath.Join(f.data.dir, "ledger")); err != nil {
		return fmt.Errorf("%s holds no data of graphd: %w", printable(f.data.dir), err)
	}
	return nil
}
