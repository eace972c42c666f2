module github.com/merutable/merutable

go 1.26

require (
	github.com/RoaringBitmap/roaring/v2 v2.30.0
	github.com/apache/arrow-go/v18 v18.8.0
	golang.org/x/sys v0.50.0
	google.golang.org/protobuf v1.36.12
)
