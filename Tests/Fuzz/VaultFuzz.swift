import Cryptography
import Foundation

@testable import VaultLog

/// `entries` or `invitations`: the part of shared vaults that reads the input.
private let reader = ProcessInfo.processInfo.environment["SALTERN_FUZZ_READER"] ?? "entries"

/// A log of one entry, whose keys have signed none of the inputs.
private let log: MembershipLog = {
    do {
        let key = GenerationKey.random()
        guard let name = MemberName("Ada"), let time = EntryTime(seconds: 1_800_000_000) else {
            preconditionFailure("name and time are valid")
        }
        return try MembershipLog(
            founding: EntryWriter.found(by: .random(), named: name, .generate(), key, at: time))
    } catch {
        preconditionFailure("the founding entry is valid: \(error)")
    }
}()

private func readEntry(_ input: [UInt8]) {
    readList(input)
    guard let entry = try? Entry(input) else { return }
    precondition(input.count <= Entry.byteLimit, "the length is limited")
    precondition(
        entry.header.bytes(entry.payload.kind) + entry.payload.bytes + entry.signature.bytes == input,
        "an entry has one encoding")
    precondition((try? Entry(input + [0])) == nil, "no byte is behind")
    var copy = log
    precondition((try? copy.append(entry)) == nil && copy.head == log.head, "nobody has signed it")
    _ = try? MembershipLog(founding: entry)
}

private func readList(_ input: [UInt8]) {
    if let list = SealList(input) { precondition(SealList(list.edits) == list, "a list has one form") }
    if let body = SignedBody(SecureBytes(copying: input)) {
        precondition(body.bytes == SecureBytes(copying: input), "a body has one encoding")
    }
}

private func readInvitation(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    if let link = try? InvitationLink(text) {
        precondition((try? InvitationLink(link.text))?.text == link.text, "a link has one text")
    }
    if let code = try? InvitationCode(text) {
        let canonical = code.text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        precondition((try? InvitationCode(canonical))?.text == code.text, "a code has one text")
    }
    if let name = MemberName(text) { precondition(MemberName(padded: name.padded[...]) == name, "a name comes back") }
}

/// libFuzzer calls this with one input after another; a trap is a finding.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: start, count: count))
    switch reader {
    case "invitations": readInvitation(input)
    default: readEntry(input)
    }
    return 0
}
