package odata

import (
	"strings"
	"unicode/utf8"

	"antipode/services/storageerr"
)

const (
	// TopMax is the largest $top, and how many rows an answer has without one.
	TopMax = 1000
	// selectMax bounds the names of a $select.
	selectMax = 252
	// fewNames is up to where selected names are compared one by one.
	fewNames = 8
)

// Selection is a parsed $select.
type Selection struct {
	text  string
	all   bool
	names []string
	// places finds a name's index where there are many; nil for few.
	places map[string]int
}

// ParseSelect reads the decoded value of a $select that is present: names with commas
// between and spaces at will. Blank or * is everything. Doubles and empty parts are
// dropped.
func ParseSelect(text string) (*Selection, error) {
	s := &Selection{text: text}
	if !utf8.ValidString(text) {
		return nil, storageerr.InvalidInput
	}
	if strings.Count(text, ",") >= selectMax {
		return nil, storageerr.InvalidInput
	}
	for name := range strings.SplitSeq(text, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "*":
			s.all = true
		case name != "" && s.index(name) < 0:
			s.names = append(s.names, name)
			if s.places != nil {
				s.places[name] = len(s.names) - 1
			} else if len(s.names) > fewNames {
				s.places = make(map[string]int)
				for i, n := range s.names {
					s.places[n] = i
				}
			}
		}
	}
	s.all = s.all || len(s.names) == 0
	return s, nil
}

func (s *Selection) index(name string) int {
	if s.places != nil {
		if i, ok := s.places[name]; ok {
			return i
		}
		return -1
	}
	for i, n := range s.names {
		if n == name {
			return i
		}
	}
	return -1
}

// indexBytes is index without making a string.
func (s *Selection) indexBytes(name []byte) int {
	if s.places != nil {
		if i, ok := s.places[string(name)]; ok {
			return i
		}
		return -1
	}
	for i, n := range s.names {
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
