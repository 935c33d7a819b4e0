package tables

import (
	"net/http"
	"strings"

	"antipode/api/protocol"
	"antipode/api/wire"
)

// Values of DataServiceVersion in an answer (protocol/table.md 2.3, 13.5). In a batch the former is
// that of a JSON document or an insert of versions with JSON, the latter that of everything else.
// Requests are answered with it before 2013-08-15 only.
const (
	dataVersion3 = "3.0;"
	dataVersion1 = "1.0;"
)

// checkDataVersion refuses a request in a form of OData that its version has not, or none
// (protocol/table.md 2.3). MaxDataServiceVersion is what the client reads at most, which may be
// more: answers of a version have the form that it has.
func checkDataVersion(v protocol.Version, h http.Header) error {
	newest := "1.0"
	switch {
	case v >= jsonSince:
		newest = "3.0"
	case v >= protocol.Version20110818:
		newest = "2.0"
	}
	for _, name := range []string{"DataServiceVersion", "MaxDataServiceVersion"} {
		text := h.Get(name)
		number, _, _ := strings.Cut(text, ";")
		switch number = strings.TrimSpace(number); {
		case text == "":
		case len(number) != len(newest) || number[0] < '1' || number[0] > '9' || number[1:] != ".0",
			name == "DataServiceVersion" && number > newest:
			return wire.BadHeader(name, text)
		}
	}
	return nil
}
