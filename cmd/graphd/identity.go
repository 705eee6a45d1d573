package main

import (
	"github.com/spf13/cobra"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/httpapi"
	"github.com/graphd/graphd/internal/ingest"
)

// identityLine is what is said of one event.
type identityLine struct {
	Place httpapi.Text `json:"place"`
	*httpapi.Identity
}

func (a *app) identityCommand() *cobra.Command {
	var document bool
	cmd := &cobra.Command{
		Use:   "identity PATH...",
		Short: "Say which event and run each event is",
		Long: "Write one line of JSON for each event of PATH: event ID, content digest, logical run, attempt, slot and its rule,\n" +
			"warnings. The logical run is the one that follows from these events together. Nothing is stored.\n\n" + pathHelp,
		Args: atLeast(1, "a PATH"),
		RunE: func(_ *cobra.Command, args []string) error {
			decoder, err := ingest.NewDecoder(ingest.Options{Names: nameRules(true)})
			if err != nil {
				return err
			}
			var lines []identityLine
			var events []*fact.Event
			var ids []*httpapi.Identity
			failed := a.each(args, func(b ingest.Body) error {
				e, id, err := httpapi.Identify(decoder, b.Data)
				if err != nil {
					return err
				}
				id.Index = len(ids)
				if !document {
					id.Document, id.Fixed, id.Drifting, id.Transport = nil, nil, nil, nil
				}
				lines, events, ids = append(lines, identityLine{httpapi.Text(b.Place()), id}), append(events, e), append(ids, id)
				return nil
			})
			httpapi.Place(decoder.Version(), events, ids)
			for _, line := range lines {
				if err := a.writeJSON(line); err != nil {
					return err
				}
			}
			return failed
		},
	}
	cmd.Flags().BoolVar(&document, "document", false, "add the identity document, which the event ID is the hash of, and what it leaves out")
	return cmd
}

// pathHelp says what can be read.
const pathHelp = "PATH is a file, a folder (all of its *.json, *.jsonl and *.ndjson, with .gz or .zst too) or - for standard input.\n" +
	"A file holds JSON documents, a JSON array or one document a line, as it is or compressed with gzip or zstd.\n" +
	"What is no event is told on standard error, and makes the exit status 1."
