package main

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// Value is a CEL value with its run-time type.
//
// Plain holds: null, bool, int and uint as JSON; a double as its shortest text; a string as
// itself; bytes in base64; a timestamp in RFC 3339; a duration in nanoseconds; a type as its name; a list as values; a map as pairs
// of values; an optional as a list of at most one value; a quantity as its digits and decimal exponent; a named format as its name;
// anything else as Go prints it.
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
		return strconv.FormatFloat(float64(value), 'g', -1, 64)
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
	return plainOpaque(value.Value())
}

func plainOpaque(value any) string {
	switch value := value.(type) {
	case *resource.Quantity:
		exact := value.DeepCopy()
		decimal := exact.AsDec()
		return fmt.Sprintf("%se%d", decimal.UnscaledBig(), -decimal.Scale())
	case apiservercel.Format:
		return value.Name
	case *types.Err:
		return ""
	}
	return fmt.Sprint(value)
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
