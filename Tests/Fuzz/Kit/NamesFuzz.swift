import Cryptography
import Foundation

@testable import SalternClient

/// Titles, links, codes and addresses that others have chosen.
func fuzzNames(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    fuzzPath(text)
    fuzzLink(text)
    fuzzAddress(text)
    if let code = RecoveryCode(text) {
        guard let again = RecoveryCode(code.text) else { preconditionFailure("a printed code is a code") }
        precondition(again.characters == code.characters, "a printed code reads back the same")
    }
    precondition(PastedText.trimmed(PastedText.trimmed(text)) == PastedText.trimmed(text), "trimming ends")
    _ = ServerClock.time(text)
    if let marker = FolderMarker(input) {
        precondition(marker.text.utf8.count <= 16 << 10, "a marker is short")
        precondition((0...FolderMarker.generationLimit).contains(marker.generation), "a generation has a bound")
        precondition(marker.lines.values.allSatisfy { (0...FolderMarker.generationLimit).contains($0) })
        if let again = FolderMarker(Array(marker.text.utf8)), again.collection == marker.collection {
            precondition(again == marker, "a marker reads back the same")
        }
    }
}

private func check(_ path: FolderPath) {
    precondition(!path.text.hasPrefix("/") && path.text.utf8.count <= 4_000, "a path is relative")
    for name in path.names {
        precondition(name != "." && name != ".." && !name.isEmpty, "a path leads down")
        precondition(name.utf8.count <= 255 && !name.utf8.contains(0) && !name.utf8.contains(UInt8(ascii: "/")))
        precondition(name.lowercased() != FolderPath.corner, "a path does not lead to the kit's own files")
    }
    guard let again = try? FolderPath(path.text) else { preconditionFailure("a path is a path") }
    precondition(again == path, "a path has one form")
}

private func fuzzPath(_ text: String) {
    guard let path = try? FolderPath(text) else { return }
    check(path)
    path.folders.forEach(check)
    let words = FolderPath.words(of: text)
    precondition(words.utf8.count <= 64, "words leave room for more")
    let conflict = path.conflicting("\(words), 2026-01-02")
    for other in [conflict, path.suffixed(words), conflict.conflicting("\(words), 2026-01-03, 12345678")] {
        check(other)
        precondition(other.names.count <= path.names.count, "a suffix makes no folder")
    }
}

private func fuzzLink(_ text: String) {
    guard let link = try? ShareAddress(text) else { return }
    precondition(ShareAddress.isID(link.id), "an id can stand in a path")
    precondition(PinnedServer.canonical(link.server) == link.server, "a server has one form")
    precondition(!link.keys.isEmpty && link.keys.allSatisfy { $0.count > 0 }, "a link has a key")
}

private func fuzzAddress(_ text: String) {
    guard let address = PinnedServer.canonical(text) else { return }
    precondition(PinnedServer.canonical(address) == address, "an address has one form")
    precondition(PinnedServer(base: address, pins: []).fault == nil, "an address in that form can be used")
    guard let host = PinnedServer.host(of: address) else { preconditionFailure("an address has a host") }
    precondition(host == host.lowercased() && !host.isEmpty && !host.contains("/"), "a host is in lower case")
}
