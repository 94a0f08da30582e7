import Cryptography

@testable import SalternClient

private let account = id("0f9a5a5c-5c0e-4a4c-9f0e-1f1d1c1b1a19", AccountID.self)
private let item = id("1f9a5a5c-5c0e-4a4c-9f0e-1f1d1c1b1a19", ItemID.self)
private let place = SealedBox.Place(.body, account: account, item: item, collection: "notes")
private let key: DataKey = {
    guard let key = DataKey(SecureBytes(copying: [UInt8](repeating: 7, count: 32))) else {
        preconditionFailure("32 bytes are a key")
    }
    return key
}()
private let password = StretchedPassword(SecureBytes(copying: [UInt8](repeating: 9, count: 64)))

private func id<Entity>(_ text: String, _ type: Identifier<Entity>.Type) -> Identifier<Entity> {
    guard let id = Identifier<Entity>(text) else { preconditionFailure("it is a UUID") }
    return id
}

private func bytes(_ secret: SecureBytes) -> [UInt8] { secret.withUnsafeBytes { [UInt8]($0) } }

/// Sealed containers: as they come, and with any plaintext that a holder of the key could have sealed.
func fuzzSealed(_ input: [UInt8]) {
    precondition((try? SealedBox.open(input, at: place, with: key)) == nil, "nothing opens without the key")
    _ = try? Keyring(sealed: input, openedBy: password)
    _ = try? RecoveryKeys.open(input, with: password, account: account)
    _ = try? RNCryptorMessage.open(input, encryptionKey: key.bytes, authenticationKey: key.bytes)
    fuzzPlaintext(input)
    fuzzKeyring(input)
}

private func fuzzPlaintext(_ plaintext: [UInt8]) {
    let data = SealedBox.additionalData(place)
    guard let box = try? AESGCM.seal(plaintext, using: key.itemKey(place), authenticating: data) else { return }
    let sealed = [1] + key.id.bytes + box
    guard let opened = try? SealedBox.open(sealed, at: place, with: key) else { return }
    precondition(opened.edit.number <= SealedBox.Edit.limit, "a number has room for those that follow")
    _ = opened.edit.next(after: sealed).creating(afterHash: opened.edit.previous, deletedAt: Revision(.max))
    guard let again = try? SealedBox.seal(opened.content, opened.edit, at: place, with: key),
        let reopened = try? SealedBox.open(again, at: place, with: key)
    else { preconditionFailure("what was opened can be sealed") }
    precondition(reopened.content == opened.content && reopened.edit == opened.edit, "it reads back the same")
    precondition(again.count == sealed.count, "content of one length has one sealed length")
    let other = SealedBox.Place(.title, account: account, item: item, collection: "notes")
    precondition((try? SealedBox.open(sealed, at: other, with: key)) == nil, "it opens in its own place only")
}

private func fuzzKeyring(_ encoded: [UInt8]) {
    guard let keyring = try? Keyring(encoded: SecureBytes(copying: encoded)) else { return }
    precondition(bytes(keyring.encoded()) == encoded, "a keyring has one encoding")
    let next = keyring.changed { _ in }
    precondition(next.counter <= Keyring.counterLimit && next.counter >= keyring.counter, "the counter has a bound")
    _ = keyring.opening(also: next).currentKey
    guard let sealed = try? keyring.sealed(under: password),
        let opened = try? Keyring(sealed: sealed, openedBy: password)
    else { preconditionFailure("a keyring can be sealed and opened") }
    precondition(bytes(opened.encoded()) == encoded, "it is the same keyring")
}
