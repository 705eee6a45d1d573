// Package e2e tests the built graphd with real OpenLineage producers, over HTTP,
// as its users have it. The producers' own set-up is kept apart from this
// repository: the tests say so where it is not there.
package e2e
