public import Foundation

// Security exports Core Foundation, whose types Swift bridges as it does their namesakes in Foundation:
// https://developer.apple.com/documentation/swift/working-with-core-foundation-types
public typealias CFString = NSString
public typealias CFArray = NSArray
public typealias CFDictionary = NSDictionary
public typealias CFData = NSData
public typealias CFTypeRef = AnyObject
public typealias CFError = NSError
public typealias OSStatus = Int32

/// https://developer.apple.com/documentation/security/errsecsuccess and its neighbours
public var errSecSuccess: OSStatus { 0 }
public var errSecParam: OSStatus { -50 }
public var errSecItemNotFound: OSStatus { -25300 }
