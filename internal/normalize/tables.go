package normalize

import (
	"slices"
	"strconv"

	"github.com/graphd/graphd/internal/fact"
)

// The tables of the contract, for documentation and for other programs. Each
// accessor returns a copy.

// ClassTable returns the shipped class rules.
func ClassTable() []ClassRule { return slices.Clone(classTable) }

// SetTable returns the arrays whose order and repetitions say nothing.
func SetTable() []FieldRule { return slices.Clone(setTable) }

// KeptEmpty returns the places that stay although they are empty.
func KeptEmpty() []FieldRule { return slices.Clone(keptEmpty) }

// CredentialTable returns the connection URIs that credentials are removed from.
func CredentialTable() []FieldRule { return slices.Clone(credentialTable) }

// CredentialParameters returns the parameters of such a URI that are removed.
func CredentialParameters() []string { return slices.Clone(credentialParameters) }

// InstantMembers returns the members that are written as instants in UTC.
func InstantMembers() []string { return slices.Clone(instantMembers) }

// PlaceRules returns the rules that find a slot under a parent.
func PlaceRules() []PlaceRule { return slices.Clone(placeRules) }

// VersionOf returns the identity version under an operator's class rules and a
// schema digest: that of the contract, of the rules and of the schemas, so that
// two eras can be told apart.
func VersionOf(rules []ClassRule, schemaDigest string) string {
	ofRules := fact.Hash("identity rules", ruleParts(rules)...).String()
	ofSchemas := fact.Hash("identity schemas", schemaDigest).String()
	return ContractVersion + "." + ofRules[:8] + "." + ofSchemas[:8]
}

// ruleParts lists everything that decides about identity, in the order of its
// digest.
func ruleParts(rules []ClassRule) (parts []string) {
	add := func(p ...string) { parts = append(parts, p...) }
	for _, r := range concat(classTable, rules) {
		add("class", r.Producer, string(r.Container), r.Facet, r.Path, r.Class.String())
	}
	for _, t := range []struct {
		name  string
		table []FieldRule
	}{{"set", setTable}, {"kept empty", keptEmpty}, {"credentials", credentialTable}} {
		for _, r := range t.table {
			add(t.name, string(r.Container), r.Facet, r.Path)
		}
	}
	for _, p := range credentialParameters {
		add("credential parameter", p)
	}
	for _, m := range instantMembers {
		add("instant", m)
	}
	for _, r := range placeRules {
		add("place", r.Name, r.Producer, r.Integration, r.Except, r.Numbered, strconv.FormatBool(r.BySQL))
	}
	return parts
}
