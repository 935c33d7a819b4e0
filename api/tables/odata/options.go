package odata

import (
	"strings"
	"unicode/utf8"

	"antipode/services/storageerr"
)

const (
	// TopMax is the largest $top, and how many rows an answer has without one.
	TopMax = 1000
	// SelectMax bounds the names of a $select.
	SelectMax = 252
	// fewNames is up to where selected names are compared one by one.
	fewNames = 8
)

// Selection is a parsed $select.
type Selection struct {
	// Text is the value as it came.
	Text string
	// All: every property is shown.
	All bool
	// Names are the properties named, each once.
	Names []string
	// places finds a name's index where there are many; nil for few.
	places map[string]int
}

// ParseSelect reads the decoded value of a $select that is present: names with commas
// between and spaces at will. Blank or * is everything. Doubles and empty parts are
// dropped.
func ParseSelect(text string) (*Selection, error) {
	s := &Selection{Text: text}
	if !utf8.ValidString(text) {
		return nil, storageerr.InvalidInput
	}
	if strings.Count(text, ",") >= SelectMax {
		return nil, storageerr.InvalidInput
	}
	for name := range strings.SplitSeq(text, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "*":
			s.All = true
		case name != "" && s.Index(name) < 0:
			s.Names = append(s.Names, name)
			if s.places != nil {
				s.places[name] = len(s.Names) - 1
			} else if len(s.Names) > fewNames {
				s.places = make(map[string]int)
				for i, n := range s.Names {
					s.places[n] = i
				}
			}
		}
	}
	s.All = s.All || len(s.Names) == 0
	return s, nil
}

// Index is the place of a name in Names, or -1.
func (s *Selection) Index(name string) int {
	if s.places != nil {
		if i, ok := s.places[name]; ok {
			return i
		}
		return -1
	}
	for i, n := range s.Names {
		if n == name {
			return i
		}
	}
	return -1
}

// IndexBytes is Index without making a string.
func (s *Selection) IndexBytes(name []byte) int {
	if s.places != nil {
		if i, ok := s.places[string(name)]; ok {
			return i
		}
		return -1
	}
	for i, n := range s.Names {
		if n == string(name) {
			return i
		}
	}
	return -1
}

// ParseTop reads the decoded value of a $top that is present: 0 to TopMax.
func ParseTop(text string) (int, error) {
	n := 0
	for i := range len(text) {
		c := text[i]
		if c < '0' || c > '9' {
			return 0, storageerr.InvalidInput
		}
		if n = n*10 + int(c-'0'); n > TopMax {
			return 0, storageerr.InvalidInput
		}
	}
	if text == "" {
		return 0, storageerr.InvalidInput
	}
	return n, nil
}
