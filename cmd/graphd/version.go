package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/graphd/graphd/internal/ingest"
)

// version is set by the linker in released builds.
var version string

// buildInfo says which program this is.
type buildInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	// Identity is the identity version of the events that it decodes.
	Identity string `json:"identity,omitempty"`
}

func build() buildInfo {
	b := buildInfo{Version: version, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if ok {
		modified := ""
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				b.Commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = "+changes"
			}
		}
		if b.Commit != "" {
			b.Commit += modified
		}
		if b.Version == "" && info.Main.Version != "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	return b
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			decoder, err := ingest.NewDecoder(ingest.Options{})
			if err != nil {
				return err
			}
			b := build()
			b.Identity = decoder.Version()
			if asJSON {
				return a.writeJSON(b)
			}
			commit := b.Commit
			if commit == "" {
				commit = "unknown"
			}
			_, err = fmt.Fprintf(a.stdout, "graphd %s\ncommit    %s\ngo        %s\nidentity  %s\n", b.Version, commit, b.Go, b.Identity)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}
