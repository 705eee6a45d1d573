package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/lineage"
)

// foldFlags say what to show of the graph.
type foldFlags struct {
	name, namespace, direction string
	collapse                   bool
}

func (a *app) foldCommand() *cobra.Command {
	var f foldFlags
	cmd := &cobra.Command{
		Use:   "fold PATH...",
		Short: "Compute the graph of events, without a store",
		Long: "Compute the lineage graph of all events of PATH and write its canonical snapshot: one JSON object a line, sorted.\n" +
			"With --lineage write what a dataset comes from, as a tree. The order of events, and their repetitions, do not show.\n\n" + pathHelp,
		Args: atLeast(1, "a PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.name == "" && (f.namespace != "" || cmd.Flags().Changed("direction")) {
				return &usageError{errors.New("--namespace and --direction go with --lineage")}
			}
			if f.direction != string(lineage.Up) && f.direction != string(lineage.Down) {
				return &usageError{errors.New("--direction: want upstream or downstream")}
			}
			return a.fold(args, f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.name, "lineage", "", "write the lineage of the dataset of this `NAME`")
	fs.StringVar(&f.namespace, "namespace", "", "the dataset's `NAMESPACE`, where several have one of its name")
	fs.StringVar(&f.direction, "direction", string(lineage.Up), "upstream or downstream")
	fs.BoolVar(&f.collapse, "collapse-names", true, "take partitions and dates in paths for parts of one dataset")
	return cmd
}

func (a *app) fold(paths []string, f foldFlags) error {
	names := nameRules(f.collapse)
	decoder, err := ingest.NewDecoder(ingest.Options{Names: names})
	if err != nil {
		return err
	}
	var events []*fact.Event
	failed := a.each(paths, func(b ingest.Body) error {
		e, err := decoder.Decode(b.Data)
		if err == nil {
			events = append(events, e)
		}
		return err
	})
	g := lineage.Fold(decoder.Version(), events)
	if f.name == "" {
		err = g.WriteSnapshot(a.stdout)
	} else {
		err = writeTree(a.stdout, g, names, f)
	}
	if err != nil {
		return err
	}
	return failed
}
