import HTTPCore

/// libFuzzer calls this with one input after another; a trap is a finding.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    let length = ProxyHeader.restLength(prefix: bytes.prefix(ProxyHeader.prefixLength))
    if let length {
        precondition((0...ProxyHeader.restLimit).contains(length), "what is read is bounded")
        precondition(ProxyHeader.mayBegin(with: bytes), "a prefix begins as one")
        let whole = Array(bytes.prefix(ProxyHeader.prefixLength + length))
        precondition((ProxyHeader(whole) != nil) == (whole.count == ProxyHeader.prefixLength + length))
        if let client = ProxyHeader(whole)?.client {
            precondition(IPAddress(client.address) == client.ip, "the address reads back the same")
            precondition(client.ip.description == client.address, "an address has one text")
            var cut = whole
            cut.removeLast()
            precondition(ProxyHeader(cut) == nil, "a header is whole")
        }
    } else {
        precondition(ProxyHeader(bytes) == nil, "without a prefix there is no header")
    }
    for count in 0...min(bytes.count, 12) where ProxyHeader.mayBegin(with: bytes) {
        precondition(ProxyHeader.mayBegin(with: bytes.prefix(count)), "a beginning of a beginning is one")
    }
    return 0
}
