package tables

import (
	"errors"
	"strings"

	"antipode/api/protocol"
	"antipode/api/tables/atom"
	"antipode/api/tables/json"
	"antipode/services/storageerr"
)

// Versions at which the payload formats change (protocol/table.md 2.4).
const (
	jsonSince = protocol.Version20130815
	atomUntil = protocol.Version20151211
)

// offer is what one media type asks for.
type offer byte

const (
	offerNone offer = iota
	offerJSON
	offerVerbose
	offerAtom
	offerXML
	offerAny
)

// negotiate chooses the codec of the answer from the effective version, the Accept
// header and the decoded $format, which wins when it is not empty. Before jsonSince the
// answer is Atom, whatever is asked.
func negotiate(version protocol.Version, accept, format string) (codec, error) {
	if version < jsonSince {
		return atom.Codec{}, nil // $format came with JSON.
	}
	text := accept
	if format != "" {
		text = format
	}
	if strings.TrimSpace(text) == "" {
		text = "*/*"
	}
	// Of a list the first supported type is taken.
	var xml, wantsAtom, verbose bool
	for part := range strings.SplitSeq(text, ",") {
		level, what := parseMedia(part)
		switch {
		case what == offerJSON:
			return level, nil
		case version < atomUntil && (what == offerAtom || what == offerXML || what == offerAny):
			return atom.Codec{}, nil
		case what == offerAny:
			return json.MinimalMetadata, nil
		}
		verbose = verbose || what == offerVerbose
		wantsAtom = wantsAtom || what == offerAtom
		xml = xml || what == offerXML
	}
	switch {
	case wantsAtom:
		return nil, storageerr.AtomNotSupported
	case xml:
		return json.MinimalMetadata, nil
	case verbose:
		return nil, storageerr.JSONVerboseNotSupport
	}
	return nil, storageerr.MediaTypeNotSupported
}

// AtomErrors reports whether an error is answered in the Atom era's XML, and not in JSON
// (protocol/table.md 2.1, 2.4, 8.1): the format that the answer would have had. known is false
// where the request's version is none: then Accept alone decides. accept is the header,
// format the decoded $format.
func AtomErrors(version protocol.Version, known bool, accept, format string) bool {
	if known {
		form, err := negotiate(version, accept, format)
		if err != nil { // Where nothing is served that the client asks for: the default of the version.
			return version < atomUntil && !errors.Is(err, storageerr.JSONVerboseNotSupport)
		}
		return form == atom.Codec{}
	}
	text := accept
	if format != "" {
		text = format
	}
	for part := range strings.SplitSeq(text, ",") {
		switch _, what := parseMedia(part); what {
		case offerJSON, offerVerbose:
			return false
		case offerAtom, offerXML:
			return true
		}
	}
	return false
}

// bodyCodec chooses the codec of a request's body, of the kinds that the version takes. A body
// without a type is of the newest of them.
func bodyCodec(version protocol.Version, contentType string) (codec, error) {
	level, what := parseMedia(contentType)
	if strings.TrimSpace(contentType) == "" {
		if what = offerJSON; version < jsonSince {
			what = offerAtom
		}
	}
	switch what {
	case offerJSON, offerVerbose:
		if version < jsonSince {
			return nil, storageerr.JSONNotSupported
		}
		if what == offerVerbose {
			return nil, storageerr.JSONVerboseNotSupport
		}
		return level, nil
	case offerAtom, offerXML:
		if version >= atomUntil {
			return nil, storageerr.AtomNotSupported
		}
		return atom.Codec{}, nil
	}
	return nil, storageerr.MediaTypeNotSupported
}

// parseMedia reads one media type with its parameters. q and all but odata are
// ignored.
func parseMedia(text string) (json.Level, offer) {
	name, params, _ := strings.Cut(text, ";")
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "application/json", "json":
		return parseODataParam(params)
	case "application/atom+xml", "atom", "application/atom xml": // The last is an unescaped + of a query.
		return 0, offerAtom
	case "application/xml", "text/xml":
		return 0, offerXML
	case "*/*", "application/*":
		return json.MinimalMetadata, offerAny
	}
	return 0, offerNone
}

func parseODataParam(params string) (json.Level, offer) {
	for param := range strings.SplitSeq(params, ";") {
		key, val, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(key), "odata") {
			continue
		}
		switch strings.ToLower(strings.Trim(val, " \t\"")) {
		case "nometadata":
			return json.NoMetadata, offerJSON
		case "minimalmetadata":
			return json.MinimalMetadata, offerJSON
		case "fullmetadata":
			return json.FullMetadata, offerJSON
		case "verbose":
			return 0, offerVerbose
		}
		return 0, offerNone
	}
	return json.MinimalMetadata, offerJSON
}
