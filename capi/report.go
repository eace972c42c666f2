package main

/*
#include "capi.h"
*/
import "C"

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// maxReportBatch bounds the rows of one batch of a report.
const maxReportBatch = 65_536

// giveReport puts a stream over a report into *out.
func giveReport(r *report, out *C.struct_ArrowArrayStream) error {
	return giveSource(&reportSource{r: r}, out)
}

// reportSource gives a report's rows out in batches.
type reportSource struct {
	r    *report
	next int
}

func (s *reportSource) schema() *arrow.Schema { return s.r.schema }

func (s *reportSource) batch(out *C.struct_ArrowArray) error {
	rows := s.r.rows[s.next:min(len(s.r.rows), s.next+maxReportBatch)]
	if len(rows) == 0 {
		return nil
	}
	s.next += len(rows)
	b := array.NewRecordBuilder(cBuffers, s.r.schema)
	defer b.Release()
	for _, row := range rows {
		for i, v := range row {
			if err := appendAny(b.Field(i), v); err != nil {
				return err
			}
		}
	}
	rec := b.NewRecordBatch()
	giveRecord(rec, out)
	return nil
}

func (s *reportSource) close() {}

func appendAny(b array.Builder, v any) error {
	switch v := v.(type) {
	case nil:
		b.AppendNull()
	case string:
		b.(*array.StringBuilder).Append(v)
	case int64:
		b.(*array.Int64Builder).Append(v)
	case float64:
		b.(*array.Float64Builder).Append(v)
	case bool:
		b.(*array.BooleanBuilder).Append(v)
	case time.Time:
		b.(*array.TimestampBuilder).Append(arrow.Timestamp(v.UnixMicro()))
	default:
		return fmt.Errorf("a report has no values of type %T", v)
	}
	return nil
}
