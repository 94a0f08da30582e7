import Cryptography

@testable import SalternClient

/// Files for an import.
func fuzzDocuments(_ input: [UInt8]) {
    let source = AttachmentSource(SecureBytes(copying: input))
    try? DocumentLines.check(source)
    var lines = DocumentLines(source)
    do throws(VaultError) {
        while let line = try lines.next() {
            if let document = line.document { check(document) }
        }
    } catch {
        guard case .invalidDocuments(let fault) = error else { preconditionFailure("a fault has a line") }
        precondition(fault.line >= 1 && fault.line <= input.count + 1, "a fault is in the file")
    }
    fuzzLongLine(input, source)
}

private func check(_ document: ImportedDocument) {
    let source = document.content.source
    guard let whole = try? source.read(0, Int(source.byteCount)) else { preconditionFailure("content can be read") }
    precondition(SHA256.hash(whole).bytes == document.content.digest, "the digest is that of the content")
}

/// A long line and a short one are read by different code, and are the same document.
private func fuzzLongLine(_ input: [UInt8], _ source: AttachmentSource) {
    guard !input.isEmpty, !input.contains(UInt8(ascii: "\n")) else { return }
    guard let long = try? LongLine(source, 0..<Int64(input.count)), long.head.isDocument,
        let content = try? long.content()
    else { return }
    var lines = DocumentLines(source)
    guard let short = try? lines.next(), let document = short.document else { return }
    precondition(document.id == long.head.id, "a long line has the same id")
    guard let mine = try? content.source.read(0, Int(content.source.byteCount)),
        let other = try? document.content.source.read(0, Int(document.content.source.byteCount))
    else { preconditionFailure("content can be read") }
    precondition(mine == other && content.digest == document.content.digest, "a long line has the same content")
}
