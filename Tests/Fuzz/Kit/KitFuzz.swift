import Foundation

/// The readers of the client kit, for what comes from a server or a file that is not trusted.
private let readers: [String: @Sendable ([UInt8]) -> Void] = [
    "sealed": fuzzSealed, "names": fuzzNames, "manifests": fuzzManifests, "documents": fuzzDocuments,
    "replies": fuzzReplies,
]

/// The reader that the environment names.
private let reader: @Sendable ([UInt8]) -> Void = {
    let name = ProcessInfo.processInfo.environment["SALTERN_FUZZ_READER"] ?? ""
    guard let reader = readers[name] else { preconditionFailure("SALTERN_FUZZ_READER names a reader") }
    return reader
}()

/// libFuzzer calls this with one input after another; a trap is a finding.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    reader(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}
