package main

import (
	"encoding/base64"
	"fmt"
	"math"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Value is a CEL value with its run-time type.
//
// Plain holds: null, bool, int and uint as JSON; a finite double as a JSON number, others as "NaN", "+Inf" and "-Inf"; a string as
// itself; bytes in base64; a timestamp in RFC 3339; a duration in nanoseconds; a type as its name; a list as values; a map as pairs
// of values; an optional as a list of at most one value; anything else as text.
type Value struct {
	Type  string `json:"type"`
	Plain any    `json:"plain"`
}

func valueOf(value ref.Val) Value {
	return Value{Type: value.Type().TypeName(), Plain: plain(value)}
}

func plain(value ref.Val) any {
	switch value := value.(type) {
	case types.Null:
		return nil
	case types.Bool:
		return bool(value)
	case types.Int:
		return int64(value)
	case types.Uint:
		return uint64(value)
	case types.Double:
		return plainDouble(float64(value))
	case types.String:
		return string(value)
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(value)
	case types.Timestamp:
		return value.Format(time.RFC3339Nano)
	case types.Duration:
		return value.Nanoseconds()
	case *types.Optional:
		return plainOptional(value)
	case *types.Type:
		return value.TypeName()
	case traits.Mapper:
		return plainMap(value)
	case traits.Lister:
		return plainList(value)
	}
	return fmt.Sprint(value.Value())
}

func plainDouble(value float64) any {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return fmt.Sprintf("%+v", value)
	}
	return value
}

func plainOptional(value *types.Optional) []Value {
	if !value.HasValue() {
		return []Value{}
	}
	return []Value{valueOf(value.GetValue())}
}

func plainList(value traits.Lister) []Value {
	values := []Value{}
	for it := value.Iterator(); it.HasNext() == types.True; {
		values = append(values, valueOf(it.Next()))
	}
	return values
}

func plainMap(value traits.Mapper) [][2]Value {
	pairs := [][2]Value{}
	for it := value.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		pairs = append(pairs, [2]Value{valueOf(key), valueOf(value.Get(key))})
	}
	return pairs
}
