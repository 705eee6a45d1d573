package normalize

import "slices"

// The codes of warnings: what was tolerated in an event or left out of lineage.
// The list is closed; receipts carry them.
const (
	WarnZonelessTime  = "zoneless-time"
	WarnDuplicateKeys = "duplicate-keys"
	WarnNonFinite     = "non-finite"
	WarnLoneSurrogate = "lone-surrogate"
	WarnInvalidFacet  = "invalid-facet"
	WarnFormat        = "format"
)

// WarningCode is a code and what it means.
type WarningCode struct {
	Code    string `json:"code"`
	Meaning string `json:"meaning"`
}

// warningCodes is the closed list. The last two come from validation, before
// anything is normalised.
var warningCodes = []WarningCode{
	{WarnZonelessTime, "`eventTime` or `nominalStartTime` names no zone and was read as UTC"},
	{WarnDuplicateKeys, "an object has one key several times; the last one counts"},
	{WarnNonFinite, "bare `NaN`, `Infinity` or `-Infinity`, read as null"},
	{WarnLoneSurrogate, "an escape `\\ud800` to `\\udfff` without its other half, kept as it is"},
	{WarnInvalidFacet, "a facet does not match its schema: it is kept, and left out of lineage"},
	{WarnFormat, "a string is not of the form that the schema names (date-time, uri, uuid)"},
}

// WarningCodes returns the closed list of codes.
func WarningCodes() []WarningCode { return slices.Clone(warningCodes) }
