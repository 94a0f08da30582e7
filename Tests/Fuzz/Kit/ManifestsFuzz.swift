import Cryptography
import Foundation

@testable import SalternClient

/// Bodies of items, which another device of the account has sealed: manifests, values of apps with attachments in them, JSON.
func fuzzManifests(_ input: [UInt8]) {
    let body = SecureBytes(copying: input)
    // A manifest begins with a line that a fuzzer would have to find.
    let marked = SecureBytes(copying: Array("saltern-attachment-1\n".utf8) + input)
    for body in [body, marked] {
        let (found, _) = Attachment.all(in: body)
        found.forEach(check)
        if let attachment = Attachment(body) {
            precondition(found == [attachment], "a manifest is one attachment")
            guard let again = Attachment(attachment.body()) else { preconditionFailure("a manifest is a manifest") }
            precondition(again == attachment, "a manifest reads back the same")
        }
    }
    if let tree = JSONTree(input) {
        guard let again = JSONTree(tree.text) else { preconditionFailure("what was written is JSON") }
        precondition(again == tree && again.text == tree.text, "what was written is the same value")
    }
}

private func check(_ attachment: Attachment) {
    precondition(attachment.byteCount >= 0 && attachment.digest.count == 32, "lengths are no negative numbers")
    if let inline = attachment.inline {
        precondition(Int64(inline.count) == attachment.byteCount && attachment.pieceCount == 1)
        return
    }
    var sum: Int64 = 0
    for index in 0..<attachment.pieceCount {
        let count = attachment.byteCount(ofPiece: index)
        precondition(count > 0, "each piece has bytes")
        sum += Int64(count)
    }
    precondition(sum == attachment.byteCount, "the pieces are the whole")
    let size = AttachmentSize(
        of: attachment.byteCount, chunkByteCount: attachment.chunkByteCount, properties: attachment.properties)
    _ = size.replacing(.max).without(.max, of: attachment.byteCount(ofPiece: 0)).byteCount
}
