package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/schema"
)

// rulesJSON returns the tables as data, with what else a program needs to
// compute IDs. Every rule stands on a line of its own, so that a difference
// between two versions can be read.
func rulesJSON() ([]byte, error) {
	v, err := schema.New()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("{\n")
	one := func(key string, value any) {
		if err == nil {
			fmt.Fprintf(&b, " %q: ", key)
			err = encode(&b, value)
			b.WriteString(",\n")
		}
	}
	one("contract", normalize.ContractVersion)
	one("version", normalize.VersionOf(nil, v.Digest()))
	one("schemas", v.Digest())
	list(&b, &err, "classes", normalize.ClassTable())
	list(&b, &err, "sets", normalize.SetTable())
	list(&b, &err, "keptEmpty", normalize.KeptEmpty())
	list(&b, &err, "credentials", normalize.CredentialTable())
	one("credentialParameters", normalize.CredentialParameters())
	one("instants", normalize.InstantMembers())
	list(&b, &err, "places", normalize.PlaceRules())
	one("pathSchemes", normalize.DefaultNameRules().PathSchemes)
	list(&b, &err, "warnings", normalize.WarningCodes())
	b.Truncate(b.Len() - len(",\n"))
	b.WriteString("\n}\n")
	return b.Bytes(), err
}

func list[T any](b *bytes.Buffer, err *error, key string, values []T) {
	fmt.Fprintf(b, " %q: [\n", key)
	for i, v := range values {
		if *err != nil {
			return
		}
		b.WriteString("  ")
		*err = encode(b, v)
		if i < len(values)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString(" ],\n")
}

// encode writes compact JSON in which <, > and & stand for themselves.
func encode(b *bytes.Buffer, value any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	b.Truncate(b.Len() - len("\n"))
	return nil
}
