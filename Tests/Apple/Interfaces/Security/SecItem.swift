public import Foundation
internal import Synchronization

// https://developer.apple.com/documentation/security/keychain-services: the keys and values in use.
public var kSecClass: CFString { "class" }
public var kSecClassGenericPassword: CFString { "genp" }
public var kSecAttrService: CFString { "svce" }
public var kSecAttrAccount: CFString { "acct" }
public var kSecAttrAccessible: CFString { "pdmn" }
public var kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString { "cku" }
public var kSecUseDataProtectionKeychain: CFString { "nleg" }
public var kSecReturnData: CFString { "r_Data" }
public var kSecMatchLimit: CFString { "m_Limit" }
public var kSecMatchLimitOne: CFString { "m_LimitOne" }
public var kSecValueData: CFString { "v_Data" }

/// What the stand-in keeps: data by service and account.
private let keychain = Mutex<[String: Data]>([:])

private func name(_ query: CFDictionary) -> String? {
    guard let service = query[kSecAttrService] as? String, let account = query[kSecAttrAccount] as? String,
        query[kSecClass] as? String == "genp"
    else { return nil }
    return service + "\n" + account
}

/// https://developer.apple.com/documentation/security/secitemcopymatching(_:_:)
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    guard let name = name(query), query[kSecReturnData] as? Bool == true else { return errSecParam }
    guard let data = keychain.withLock({ $0[name] }) else { return errSecItemNotFound }
    result?.pointee = data as NSData
    return errSecSuccess
}

/// https://developer.apple.com/documentation/security/secitemadd(_:_:)
public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    guard let name = name(attributes), let data = attributes[kSecValueData] as? Data else { return errSecParam }
    keychain.withLock { $0[name] = data }
    return errSecSuccess
}

/// https://developer.apple.com/documentation/security/secitemupdate(_:_:)
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus {
    guard let name = name(query), let data = attributesToUpdate[kSecValueData] as? Data else { return errSecParam }
    return keychain.withLock { items in
        guard items[name] != nil else { return errSecItemNotFound }
        items[name] = data
        return errSecSuccess
    }
}

/// https://developer.apple.com/documentation/security/secitemdelete(_:)
public func SecItemDelete(_ query: CFDictionary) -> OSStatus {
    guard let name = name(query) else { return errSecParam }
    return keychain.withLock { $0.removeValue(forKey: name) } == nil ? errSecItemNotFound : errSecSuccess
}
