module merutable-hosts/go

go 1.26
