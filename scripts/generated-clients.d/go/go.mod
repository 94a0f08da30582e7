module example.org/saltern/life

go 1.19

require example.org/saltern/client v0.0.0

replace example.org/saltern/client => ../go
